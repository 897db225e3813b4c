"""Numerics without estimators: many runs of k-means, and the indices that compare numbers of clusters."""
