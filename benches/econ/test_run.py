#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What benches/econ/run.py concludes from what the lab counted."""

import unittest
import xml.dom.minidom

import run


def results(entries, **more):
    """Entries are a policy, a section and counters; each run once."""
    made = []
    for policy, section, counters in entries:
        entry = {
            "variant": "tollfree" if policy == run.OURS else "vanilla",
            "policy": policy,
            "section": section,
            "samples": 1,
            "counters": {name: {"median": value} for name, value in counters.items()},
            "runs": [counters],
        }
        made.append(entry)
    return run.Results({"results": made, **more})


class Goals(unittest.TestCase):
    def met(self, goals):
        return [goal.is_met for goal in goals]

    def test_a_tail_is_compared_with_never_and_with_compaction(self):
        def of(ours):
            tails = {"never": 1000, "always-defrag": 100_000, run.OURS: ours}
            return results([(policy, "main", {"fault_instr_tail": tail}) for policy, tail in tails.items()])

        self.assertEqual(self.met(run.tail_goals(of(1000))), [True, True])
        self.assertEqual(self.met(run.tail_goals(of(1001))), [False, False])

    def test_the_worst_workload_counts_by_its_upper_bound(self):
        def of(high):
            cost = {"median": 0.9, "low": 0.9, "high": high}
            workload = {"name": "xz", "state": "pieces", "best_stock": "never", "relative_cost": cost}
            entries = [(run.OURS, "pieces-xz", {"modelled_ns": 60}), ("always-defrag", "pieces-xz", {"modelled_ns": 100})]
            return results(entries, workloads=[workload])

        self.assertEqual(self.met(run.throughput_goals(of(1.02))), [True, True, True])
        self.assertEqual(self.met(run.throughput_goals(of(1.03))), [True, False, True])

    def test_a_gain_is_a_share_of_what_huge_pages_everywhere_gain(self):
        def of(steps, huge):
            entries = [("never", 1000, 0), ("always", 0, 60), (run.OURS, steps, huge)]
            return results([(it, "main", {"walk_steps": walks, "vmstat_thp_fault_alloc": n}) for it, walks, n in entries])

        self.assertEqual(self.met(run.hot_goals(of(100, 6))), [True, True])
        self.assertEqual(self.met(run.hot_goals(of(101, 7))), [False, False])

    def test_no_profile_may_cost_more_than_two_percent(self):
        sections = {"none": 100, "none-version": 200, "right": 90, "size": 102, "wrong": 103, "version": 200}
        got = results([(run.OURS, name, {"modelled_ns": cost}) for name, cost in sections.items()])
        self.assertEqual(self.met(run.other_goals(got)), [True, True, False, True])

    def test_a_long_profile_costs_a_fault_little(self):
        def of(many):
            sections = {run.ROWS_FEW: (10, 1000), run.ROWS_MANY: (20, many)}
            return results([(run.OURS, name, {"page_faults": n, "fault_instr_total": total}) for name, (n, total) in sections.items()])

        self.assertEqual(self.met(run.rows_goals(of(2100))), [True])
        self.assertEqual(self.met(run.rows_goals(of(2101))), [False])

    def test_a_neighbour_changes_nothing_in_either_direction(self):
        def of(faults):
            names = [f"{it}{again}" for it in ("plain", "hostile") for again in ("", "-again")]
            got = results([(run.OURS, f"{state}-{name}", {}) for state in run.STATES for name in names])
            for (_, _, section), entry in got.entries.items():
                counts = dict.fromkeys(run.VICTIM_COUNTS, 100)
                if section.startswith("pieces-hostile"):
                    counts["page_faults"] = faults
                entry["processes"] = {run.VICTIM: counts}
            return got

        self.assertEqual(self.met(run.hostile_goals(of(98))), [True, True])
        self.assertEqual(self.met(run.hostile_goals(of(97))), [True, False])
        self.assertEqual(self.met(run.hostile_goals(of(103))), [True, False])

    def test_an_interval_is_above_the_mean_of_runs_that_differ(self):
        self.assertEqual(run.upper([5]), 5)
        self.assertEqual(run.upper([5, 5, 5]), 5)
        self.assertGreater(run.upper([4, 5, 6]), 5)


class Picture(unittest.TestCase):
    def test_every_kind_of_every_policy_is_drawn(self):
        counters = {"latency_base_1000": 9, "latency_fell_back_2048": 1, "latency_base_4096": 1, "page_faults": 11}
        got = results([(policy, "main", counters) for policy in ("never", "always-defrag", run.OURS)])
        self.assertEqual(run.kinds_of(got, "never"), {"base": [(1000, 9), (4096, 1)], "fell_back": [(2048, 1)]})
        drawn = xml.dom.minidom.parseString(run.picture(got))
        self.assertEqual(len(drawn.getElementsByTagName("polyline")), 6)


if __name__ == "__main__":
    unittest.main()
