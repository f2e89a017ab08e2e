"""Makes pagerank.json: what igraph's personalised PageRank (PRPACK) gives on fixed graphs.

Run with igraph 1.x: python pagerank.py > pagerank.json
"""

import json
import random
import sys

import igraph


def case(name, nodes, edges, reset, damping):
    graph = igraph.Graph(nodes, [(a, b) for a, b, _ in edges], directed=False)
    weights = [weight for _, _, weight in edges]
    ranks = graph.personalized_pagerank(
        directed=False, damping=damping, reset=reset, weights=weights, implementation="prpack"
    )
    return {
        "name": name,
        "nodes": nodes,
        "edges": edges,
        "reset": reset,
        "damping": damping,
        "ranks": [float(f"{rank:.12g}") for rank in ranks],
    }


def drawn(seed, nodes, edges, alone):
    """Edges between the first nodes; some go out of their way to be parallel, the last nodes have none."""
    dice = random.Random(seed)
    linked = nodes - alone
    pairs = [dice.sample(range(linked), 2) for _ in range(edges)]
    edges = [(a, b, round(dice.uniform(0.1, 3.0), 3)) for a, b in pairs + pairs[:3]]
    reset = [round(dice.random(), 3) if dice.random() < 0.2 else 0.0 for _ in range(nodes)]
    reset[0], reset[-1] = 0.5, 0.25
    return edges, reset


# Four entities and three passages (methods.md, section 10, 6).
STORY = [(0, 1, 2.0), (1, 2, 1.0), (2, 3, 1.0), (0, 3, 0.85), (4, 0, 1.0), (4, 1, 1.0), (5, 2, 1.0), (6, 3, 1.0)]
STORY_RESET = [0.5, 0.25, 0.0, 0.0, 0.05, 0.025, 0.0]
KARATE = [(a, b, 1.0) for a, b in igraph.Graph.Famous("Zachary").get_edgelist()]
DRAWN, DRAWN_RESET = drawn(224, 40, 90, 0)
ALONE, ALONE_RESET = drawn(7, 30, 50, 4)

json.dump(
    {
        "igraph": igraph.__version__,
        "cases": [
            case("entities and passages", 7, STORY, STORY_RESET, 0.5),
            case("the karate club from its first member", 34, KARATE, [1.0] + [0.0] * 33, 0.5),
            case("the karate club from two members", 34, KARATE, [1.0] + [0.0] * 32 + [3.0], 0.85),
            case("drawn weights with parallel edges", 40, DRAWN, DRAWN_RESET, 0.5),
            case("nodes without edges", 30, ALONE, ALONE_RESET, 0.5),
        ],
    },
    sys.stdout,
    separators=(",", ":"),
)
print()
