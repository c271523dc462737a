"""Statistics, pure: arrays in, NamedTuples out; numpy and scipy only."""
