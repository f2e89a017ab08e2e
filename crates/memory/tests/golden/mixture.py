"""Makes mixture.json: what scikit-learn's GaussianMixture finds in fixed points.

Run with scikit-learn 1.x and numpy: python mixture.py > mixture.json
"""

import json
import sys

import numpy
import sklearn
from sklearn.mixture import GaussianMixture

MOST = 4


def blobs(name, dims, centres, sizes, spread):
    random = numpy.random.RandomState(7)
    points = []
    for centre, size in zip(centres, sizes):
        # A fixed slanted covariance, so that full covariances matter.
        slant = numpy.eye(dims) * spread
        slant[1, 0] = 0.6 * spread
        points.append(numpy.asarray(centre) + random.randn(size, dims) @ slant.T)
    points = numpy.concatenate(points).round(4)
    fits = [
        GaussianMixture(k, covariance_type="full", tol=1e-7, max_iter=1000, n_init=20, random_state=224).fit(points)
        for k in range(1, MOST + 1)
    ]
    bic = [fit.bic(points) for fit in fits]
    best = fits[int(numpy.argmin(bic))]
    # More components than groups have many optima of equal worth; only those up to the best are compared.
    bic = bic[: best.n_components]
    return {
        "name": name,
        "points": points.tolist(),
        "bic": [round(value, 6) for value in bic],
        "weights": best.weights_.round(6).tolist(),
        "means": best.means_.round(6).tolist(),
        "surest": best.predict_proba(points).max(axis=1).round(6).tolist(),
    }


CASES = [
    blobs("three groups on a plane", 2, [(0, 0), (6, 1), (1, 7)], (80, 50, 40), 1.0),
    blobs("two groups that touch", 2, [(0, 0), (3, -3)], (60, 60), 1.0),
    blobs("one group", 3, [(1, 2, 3)], (50,), 0.5),
    blobs("two groups in ten dimensions", 10, [[0] * 10, [1] * 10], (120, 120), 0.2),
]
json.dump({"sklearn": sklearn.__version__, "numpy": numpy.__version__, "cases": CASES}, sys.stdout)
print()
