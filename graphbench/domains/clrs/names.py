"""The names of the algorithms, by the chapters of Cormen et al., Introduction to Algorithms."""

MODULES = {
    "sorting": ("insertion_sort", "bubble_sort", "heapsort", "quicksort"),
    "searching": ("minimum", "binary_search", "quickselect", "find_maximum_subarray_kadane"),
    "greedy": ("activity_selector", "task_scheduling"),
    "dynamic_programming": ("matrix_chain_order", "lcs_length", "optimal_bst"),
    "strings": ("naive_string_matcher", "kmp_matcher"),
    "geometry": ("segments_intersect", "graham_scan", "jarvis_march"),
    "breadth_first": ("bfs",),
    "depth_first": ("dfs", "topological_sort"),
    "depth_first_components": ("articulation_points", "bridges", "strongly_connected_components"),
    "spanning_trees": ("mst_kruskal", "mst_prim"),
    "shortest_paths": ("bellman_ford", "dijkstra", "dag_shortest_paths", "floyd_warshall"),
}
"""Module -> the algorithms in it."""

NAMES = tuple(sorted(name for names in MODULES.values() for name in names))
"""All algorithms, in alphabetical order."""
