"""Keras' metrics of classes and thresholds, which never take a NaN for a class."""

from tfsafe.metrics._judging import judged

Accuracy = judged("Accuracy")
BinaryAccuracy = judged("BinaryAccuracy")
CategoricalAccuracy = judged("CategoricalAccuracy")
SparseCategoricalAccuracy = judged("SparseCategoricalAccuracy")
TopKCategoricalAccuracy = judged("TopKCategoricalAccuracy", takes_float32=True)
SparseTopKCategoricalAccuracy = judged(
    "SparseTopKCategoricalAccuracy", takes_float32=True
)

F1Score = judged("F1Score")
FBetaScore = judged("FBetaScore")

AUC = judged("AUC", weighs_elements=True)
Precision = judged("Precision", weighs_elements=True)
Recall = judged("Recall", weighs_elements=True)
TruePositives = judged("TruePositives", weighs_elements=True)
TrueNegatives = judged("TrueNegatives", weighs_elements=True)
FalsePositives = judged("FalsePositives", weighs_elements=True)
FalseNegatives = judged("FalseNegatives", weighs_elements=True)
SensitivityAtSpecificity = judged("SensitivityAtSpecificity", weighs_elements=True)
SpecificityAtSensitivity = judged("SpecificityAtSensitivity", weighs_elements=True)
PrecisionAtRecall = judged("PrecisionAtRecall", weighs_elements=True)
RecallAtPrecision = judged("RecallAtPrecision", weighs_elements=True)

IoU = judged("IoU")
BinaryIoU = judged("BinaryIoU")
MeanIoU = judged("MeanIoU")
OneHotIoU = judged("OneHotIoU")
OneHotMeanIoU = judged("OneHotMeanIoU")
