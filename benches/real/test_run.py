# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of what the real-program benchmark concludes: python3 benches/real/test_run.py"""
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "examples" / "skewed-region")]
import inputs  # noqa: E402
import run  # noqa: E402
import times  # noqa: E402


def about(median, width=0.02):
    return {"median": median, "low": median - width / 2, "high": median + width / 2}


def said(plan=1.2, every=1.2, predicted=1.2, width=0.1, **more):
    return {"speedup": about(plan), "speedup_all": about(every), "predicted_speedup": about(predicted, width),
            "verdict": "faster", "advice": "apply", "reason": "", **more}


def concluded(answers, cells=()):
    """Goal number -> met, for results with these answers."""
    results = [{"cell": f"cell{i}", "said": answer} for i, answer in enumerate(answers)]
    return [met for _, met, _ in run.goals(list(cells), results)]


COUNT, GAIN, NOT_WORSE, HOLDS, WIDTH, SIGN, UNCLEAR, IDLE = range(8)


class Changes(unittest.TestCase):
    def test_what_is_neither_the_plan_nor_all_has_a_row(self):
        def variant(name, faults, speedup=None):
            return {"name": name, "median": {"minor_faults": faults}, "speedup": speedup}
        variants = [variant("none", 5000.0), variant("plan", 100.0, about(1.2)), variant("mthp-64k", 600.4, about(1.1)),
                    variant("late", 1.0)]
        results = [{"cell": "a", "said": said(comparison={"variants": variants})}, {"cell": "b", "said": said()}]
        self.assertEqual(run.changes(results), [["a", "mthp-64k", "1.100 [1.090, 1.110]", "5,000", "600"]])


class Goals(unittest.TestCase):
    def test_all_met(self):
        cells = [{"name": "cell0", "expect": "do-nothing"}]
        self.assertTrue(all(concluded([said(advice="do-nothing")] + [said()] * 19, cells)))

    def test_too_few_cells(self):
        self.assertFalse(concluded([said()] * 19)[COUNT])

    def test_too_few_that_gain(self):
        self.assertFalse(concluded([said(every=1.05)] * 18 + [said()] * 2)[GAIN])

    def test_a_plan_worse_than_all(self):
        self.assertFalse(concluded([said(plan=1.1, every=1.2)])[NOT_WORSE])
        self.assertTrue(concluded([said(plan=1.19, every=1.2)])[NOT_WORSE])

    def test_predictions_that_miss(self):
        self.assertTrue(concluded([said()] * 3 + [said(predicted=1.5)])[HOLDS])
        self.assertFalse(concluded([said()] * 2 + [said(predicted=1.5)])[HOLDS])

    def test_a_wide_interval(self):
        self.assertFalse(concluded([said(width=0.2)])[WIDTH])

    def test_a_confident_wrong_sign(self):
        self.assertFalse(concluded([said(plan=0.9, predicted=1.2)])[SIGN])
        self.assertFalse(concluded([said(plan=1.2, predicted=0.9)])[SIGN])
        self.assertTrue(concluded([said(plan=0.9, predicted=1.0)])[SIGN])

    def test_cannot_tell(self):
        unclear = {"verdict": "cannot-tell"}
        self.assertFalse(concluded([said(**unclear)])[UNCLEAR])
        self.assertTrue(concluded([said(plan=1.01, every=1.01, **unclear)])[UNCLEAR])
        self.assertTrue(concluded([said(time_limit_reached=True, **unclear)])[UNCLEAR])
        self.assertFalse(concluded([said(reason="the time limit did not suffice", **unclear)])[UNCLEAR])

    def test_advice_where_nothing_is_gained(self):
        cells = [{"name": "cell0", "expect": "do-nothing"}]
        self.assertFalse(concluded([said()], cells)[IDLE])

    def test_steps_that_were_not_reached(self):
        early = {"speedup": None, "speedup_all": about(1.0), "predicted_speedup": None, "advice": "do-nothing"}
        self.assertFalse(any(concluded([early])[goal] for goal in (COUNT, GAIN, NOT_WORSE, HOLDS, WIDTH)))
        self.assertIn("do-nothing", run.row({"cell": "x", "said": early, "seconds": 1.0}))


class Failures(unittest.TestCase):
    def test_a_status_other_than_expected_is_a_failure(self):
        def why(ended, **cell):
            return run.failure(cell, {"status": 0, "said": said(status=ended)})
        self.assertIsNone(why(0))
        self.assertIsNone(why(None))
        self.assertIsNone(why(10, status=10))
        self.assertIn("status 1 in each run, not 0", why(1))
        self.assertIn("status 0 in each run, not 10", why(0, status=10))

    def test_no_answer_is_a_failure_that_ends_with_the_last_words(self):
        text = run.failure({}, {"status": 5, "said": None, "error": "one\ntwo\n"})
        self.assertEqual(text, "failed with status 5: two")
        self.assertIn("status 5", run.failure({}, {"status": 5, "said": None, "error": ""}))


class Provenance(unittest.TestCase):
    HERE = {"cpu": "A CPU", "cpus": 2, "memory_gib": 4.0, "kernel": "6.1", "thp": "madvise"}

    def test_one_machine_is_one_line(self):
        results = [{"cell": name, "machine": self.HERE, "within": "4m"} for name in "ab"]
        self.assertEqual(run.provenance(results),
                         ["Measured on: A CPU, 2 CPUs, 4.0 GiB, Linux 6.1, THP madvise, tune --within 4m."])

    def test_results_of_several_machines_are_told_apart(self):
        results = [{"cell": "a", "machine": self.HERE, "within": "4m"}, {"cell": "b"}]
        lines = run.provenance(results)
        self.assertEqual(len(lines), 2)
        self.assertIn("unknown machine: b", lines[1])

    def test_this_machine(self):
        here = run.machine()
        self.assertGreater(here["memory_gib"], 0)
        self.assertTrue(here["cpu"] and here["kernel"] and here["thp"])
        self.assertEqual(run.chosen_mode("always [madvise] never"), "madvise")
        self.assertEqual(run.chosen_mode(""), "not there")


class Stdin(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.kept, run.RESULTS = run.RESULTS, Path(self.directory.name)

    def tearDown(self):
        run.RESULTS = self.kept

    def measured(self, **cell):
        """What a tollfree that repeats its stdin is given."""
        echo = run.RESULTS / "tollfree"
        echo.write_text("#!/usr/bin/env python3\nimport json, sys\njson.dump(sys.stdin.read(), sys.stdout)\n")
        echo.chmod(0o755)
        return run.measure({"name": "x", "command": ["true"], **cell}, "1m", str(echo))

    def test_the_text_is_what_tune_reads(self):
        got = self.measured(stdin="a\nb")
        self.assertEqual(got["said"], "a\nb")
        self.assertEqual(got["within"], "1m")

    def test_nothing_otherwise(self):
        self.assertEqual(self.measured()["said"], "")

    def test_another_text_is_another_measurement(self):
        self.assertNotEqual(run.fingerprint({"stdin": "a"}, "1m"), run.fingerprint({"stdin": "b"}, "1m"))


class Cells(unittest.TestCase):
    def test_enough_of_them_and_every_input_can_be_made(self):
        cells = run.load_cells()
        self.assertGreaterEqual(len(cells), 20)
        for cell in cells:
            for name in cell.get("inputs", []):
                self.assertTrue(hasattr(inputs, "make_" + name), name)
            self.assertTrue(cell["command"][0])

    def test_one_expects_nothing(self):
        self.assertTrue(any(cell.get("expect") == "do-nothing" for cell in run.load_cells()))


class Inputs(unittest.TestCase):
    def test_the_same_bytes_each_time(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            self.assertEqual(inputs.make("sat_hard", one).read_bytes(), inputs.make("sat_hard", two).read_bytes())

    def test_what_is_there_is_kept_and_nothing_half_made_stays(self):
        with tempfile.TemporaryDirectory() as directory:
            made = inputs.make("sat_hard", directory)
            made.write_text("kept")
            self.assertEqual(inputs.make("sat_hard", directory).read_text(), "kept")
            self.assertEqual([path.name for path in Path(directory).iterdir()], ["sat_hard"])


class Limit(unittest.TestCase):
    def test_a_cell_may_have_its_own(self):
        options = run.argparse.Namespace(within="3m")
        self.assertEqual(run.limit({"name": "a"}, options), "3m")
        self.assertEqual(run.limit({"name": "a", "within": "6m"}, options), "6m")


class Times(unittest.TestCase):
    def test_a_ratio_is_before_over_after(self):
        import random
        speedup = times.ratio([2.0, 2.1, 1.9], [1.0, 1.0, 1.0], random.Random(1))
        self.assertAlmostEqual(speedup["median"], 2.0, delta=0.01)
        self.assertLess(speedup["low"], 1.99)
        self.assertGreater(speedup["high"], 2.01)

    def test_a_drift_that_the_runs_of_a_round_share_is_not_in_it(self):
        import random
        speedup = times.ratio([2.0, 3.0, 4.0], [1.0, 1.5, 2.0], random.Random(1))
        for end in speedup.values():
            self.assertAlmostEqual(end, 2.0)


if __name__ == "__main__":
    unittest.main()
