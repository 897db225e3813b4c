"""The methods of the paper, as estimators."""
