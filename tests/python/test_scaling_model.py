"""The model of many processes: against what was measured and published, against
closed forms where there are some, and its tables as the document has them."""
import dataclasses
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import scaling_model as model  # noqa: E402


class Updates(unittest.TestCase):
    def test_a_ring_sends_each_byte_around_twice_but_for_ones_own(self):
        self.assertEqual(model.ring_seconds(1, 1e9, 1e9), 0)
        self.assertAlmostEqual(model.ring_seconds(2, 1e9, 1e9), 1)
        self.assertAlmostEqual(model.ring_seconds(1000, 1e9, 1e9), 2, delta=0.01)

    def test_sums_are_read_off_the_measured_sizes(self):
        row = next(row for row in model.MEASURED["messages"]
                   if row["processes"] == 4 and row["bytes"] == 4 << 20)
        self.assertAlmostEqual(model.measured_sum(4, 4 << 20), row["sum_ms"] / 1e3)
        beyond = [model.measured_sum(4, size) for size in (1 << 28, 1 << 29, 1 << 30)]
        self.assertAlmostEqual(beyond[2] - beyond[1], 2 * (beyond[1] - beyond[0]))

    def test_one_process_is_what_was_measured(self):
        for name in "tiny", "multi30k":
            self.assertAlmostEqual(
                model.predict_cpu(name, 1), model.measured_update(name, 1)["seconds"])

    def test_several_processes_of_a_model_that_is_worth_them_are_foretold(self):
        for processes in 2, 4:
            measured = model.measured_update("multi30k", processes)["seconds"]
            self.assertLess(abs(model.predict_cpu("multi30k", processes) / measured - 1), 0.1)

    def test_published_rates_that_nothing_was_fitted_to_are_foretold(self):
        for row in model.PUBLISHED:
            error = model.published_rate(model.V100, row) / row[4] - 1
            self.assertLess(abs(error), 0.1 if row[5] else 1e-3, row)

    def test_what_is_hidden_behind_the_backward_pass_is_saved(self):
        recipe = model.RECIPES[0]
        open_ = dataclasses.replace(model.V100, overlap=False)
        for gpus in 8, 128:
            saved = model.predict_gpu(open_, recipe, gpus) - model.predict_gpu(
                model.V100, recipe, gpus)
            whole = model.V100.sum_seconds(gpus, 2 * recipe.parameters)
            self.assertGreater(saved, 0)
            self.assertLessEqual(saved, whole)


class Losses(unittest.TestCase):
    def test_the_slowest_of_many_is_where_the_formula_puts_it(self):
        self.assertEqual(model.simulate_updates(16, 0, 0), 1)
        self.assertAlmostEqual(model.simulate_updates(16, 0, 0.3), 1.3)  # it slows all
        for processes in 2, 8, 128:
            simulated = model.simulate_updates(processes, 0.1, 0, updates=2000)
            self.assertAlmostEqual(
                simulated, 1 + 0.1 * model.largest_of(processes), delta=0.01)

    def test_nothing_fails_and_only_saving_costs(self):
        job = model.Job(1, 1e15, save=60, restart=100)
        self.assertAlmostEqual(model.simulate_goodput(job, 540), 0.9, delta=1e-3)

    def test_failures_cost_what_the_exact_formula_says(self):
        # Of exponential failures: kept / (M e^{R/M} (e^{(interval + save)/M} - 1)).
        job = model.Job(8, 20 * 3600.0, save=30, restart=200)
        mean = job.between_failures
        for interval in 300, 1200, 5000:
            exact = interval / (mean * model.math.exp(job.restart / mean) * (
                model.math.exp((interval + job.save) / mean) - 1))
            self.assertAlmostEqual(model.simulate_goodput(job, interval), exact, delta=0.005)

    def test_the_best_interval_is_dalys(self):
        job = model.Job(16, 30 * model.DAY, model.SAVE, model.RESTART)
        at_best = model.simulate_goodput(job, model.daly(job))
        for factor in 0.4, 2.5:
            self.assertGreater(at_best, model.simulate_goodput(job, factor * model.daly(job)))
        self.assertAlmostEqual(model.daly(job) / model.young(job), 1, delta=0.02)


class Pages(unittest.TestCase):
    def test_the_document_has_the_tables(self):
        page = (ROOT / "docs" / "scaling_model.md").read_text()
        for name, make in model.TABLES.items():
            self.assertIn("\n".join(make()), page, name)

    def test_the_plots_are_those_of_the_document(self):
        with tempfile.TemporaryDirectory() as folder:
            model.draw_plots(pathlib.Path(folder))
            files = sorted(pathlib.Path(folder).iterdir())
            self.assertEqual([file.name for file in files],
                             ["scaling_goodput.svg", "scaling_updates.svg"])
            for file in files:
                self.assertEqual(file.read_text(), (ROOT / "docs" / file.name).read_text())
                xml.etree.ElementTree.parse(file)


if __name__ == "__main__":
    unittest.main()
