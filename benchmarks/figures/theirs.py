"""Other people's change-point detectors, at their defaults, in an environment of their own: Otava pins numpy.

Reads a JSON list of series from stdin, prints {detector: [dates of each series]}.
"""

import json
import sys

import numpy as np
import ruptures
from otava.analysis import compute_change_points


def otava(values):
    return [int(change.index) for change in compute_change_points(values)[0]]


def pelt(values):
    """As in the example of its documentation."""
    scaled = (values - np.mean(values)) / (np.std(values) or 1)
    return ruptures.Pelt(model="rbf").fit(scaled).predict(pen=10)[:-1]


def binary_segmentation(values):
    """Squared error, the penalty of BIC at the variance of differences."""
    noise = np.var(np.diff(values)) / 2
    return (
        ruptures.Binseg(model="l2")
        .fit(np.array(values))
        .predict(pen=2 * np.log(len(values)) * noise + 1e-12)[:-1]
    )


DETECTORS = {"Otava": otava, "ruptures PELT": pelt, "ruptures BinSeg": binary_segmentation}

series = json.load(sys.stdin)
found = {name: [list(map(int, detect(values))) for values in series] for name, detect in DETECTORS.items()}
json.dump(found, sys.stdout)
