"""What type checkers say about correct and about misspelled uses of tfsafe."""
