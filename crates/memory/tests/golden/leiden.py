"""Makes leiden.json: the modularity of the best partition that leidenalg finds in fixed networks with 200 seeds.

Run with leidenalg 0.11 or later and igraph 1.x: python leiden.py > leiden.json
"""

import json
import random
import sys
from importlib.metadata import version

import igraph
import leidenalg

SEEDS = range(200)


def case(name, graph):
    partitions = [
        leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, n_iterations=-1, seed=seed)
        for seed in SEEDS
    ]
    best = max(partitions, key=lambda partition: partition.modularity)
    return {
        "name": name,
        "nodes": graph.vcount(),
        "edges": graph.get_edgelist(),
        "modularity": float(f"{best.modularity:.12g}"),
        "sizes": sorted(best.sizes()),
        "found_by": sum(partition.modularity > best.modularity - 1e-9 for partition in partitions),
    }


def planted(seed, groups, size, inside, between):
    """Groups whose members know one another more often than others."""
    dice = random.Random(seed)
    nodes = groups * size
    pairs = [(a, b) for b in range(nodes) for a in range(b)]
    chance = lambda a, b: inside if a // size == b // size else between
    return igraph.Graph(nodes, [pair for pair in pairs if dice.random() < chance(*pair)])


def tree(nodes):
    return igraph.Graph(nodes, [((node - 1) // 2, node) for node in range(1, nodes)])


json.dump(
    {
        "leidenalg": version("leidenalg"),
        "igraph": igraph.__version__,
        "cases": [
            case("karate club", igraph.Graph.Famous("Zachary")),
            case("six planted groups", planted(1, 6, 12, 0.6, 0.03)),
            case("four blurred groups", planted(2, 4, 20, 0.3, 0.06)),
            case("no groups", planted(3, 1, 50, 0.1, 0.0)),
            case("tree", tree(63)),
        ],
    },
    sys.stdout,
    separators=(",", ":"),
)
print()
