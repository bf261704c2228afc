"""What can be stabilised: functions, Keras losses, models, whole programs."""
