"""What is pure in the harness: figures from grants, slopes, charts, tables. `cargo test -p tenure-bench` runs it."""
import tempfile
import unittest
import xml.dom.minidom
from os import path
from types import SimpleNamespace

from . import grants, report
from .chart_lines import Scale, lines, multiples
from .growth import GROWTH, Growth
from .scenarios import GROUPS, SCENARIOS
from .slope import exponent, sentence

MS = 1_000_000


def turns(count, workers, hold=MS, gap=MS // 4):
    """Grants of one lock that goes round."""
    step = hold + gap
    return [(turn * step, turn * step + hold, turn * step + step, f"w{turn % workers}") for turn in range(count)]


class Grants(unittest.TestCase):
    def test_a_lock_that_goes_round_is_fair_and_its_gap_is_the_gap(self):
        figures = grants.judge(turns(400, 4), 0, 4)
        self.assertEqual((figures["gap_p50_us"], figures["jain"], figures["starved"]), (250.0, 1.0, 0))
        self.assertEqual(figures["overlaps"], 0)

    def test_who_is_never_granted_has_starved(self):
        self.assertEqual(grants.judge(turns(400, 4), 0, 5)["starved"], 1)

    def test_a_grant_before_the_release_began_is_an_overlap(self):
        held = turns(100, 2)
        held[50] = (held[49][0] + 1, *held[50][1:])
        self.assertEqual(grants.judge(held, 0, 2)["overlaps"], 1)

    def test_pairs_are_counted_per_second_and_timed_per_worker(self):
        figures = grants.pairs(turns(100, 2), 5)
        self.assertEqual(figures, {"own_pairs_per_s": 20.0, "own_pair_p50_us": 2500.0})


class Slope(unittest.TestCase):
    def test_the_exponent_tells_flat_from_proportional(self):
        sizes = (10, 100, 1000)
        self.assertAlmostEqual(exponent([(size, 7) for size in sizes]), 0)
        self.assertAlmostEqual(exponent([(size, size * 3) for size in sizes]), 1)
        self.assertAlmostEqual(exponent([(size, size ** 2) for size in sizes]), 2)

    def test_what_has_no_logarithm_has_no_exponent(self):
        self.assertIsNone(exponent([(10, 0), (100, 5)]))
        self.assertIsNone(exponent([(10, 5)]))

    def test_it_is_said_in_words(self):
        self.assertEqual(sentence("gap_p50_us", [(10, 200), (1000, 220)]),
                         "gap p50 in µs: 200 → 220 (× 1.1, flat: exponent 0.02)")
        self.assertIn("in proportion", sentence("scripts_per_s", [(10, 1), (100, 10)]))
        self.assertIn("not measured", sentence("jain", [(10, None), (100, 1)]))
        self.assertEqual(sentence("lost", [(10, 0), (100, 0)]), "lost: 0 → 0")


class Lines(unittest.TestCase):
    def test_a_line_shows_multiples_of_its_first_value(self):
        self.assertEqual(multiples([(10, None), (100, 4), (1000, 8)]), [(100, 1, 4), (1000, 2, 8)])

    def test_equal_factors_are_equal_distances(self):
        scale = Scale([1, 10_000], 0, 400)
        self.assertEqual([round(scale.at(10 ** power)) for power in range(5)], [0, 100, 200, 300, 400])
        self.assertEqual(Scale([0.5, 2], 0, 1).ticks(), [0.5, 1, 2])

    def test_the_picture_is_well_formed_and_has_a_line_per_column(self):
        drawn = lines("a < b", "names", {"p50_us": [(10, 1), (100, 2)], "jain": [(10, 1), (100, 1)], "lost": [(10, 0)]})
        document = xml.dom.minidom.parseString(drawn)
        self.assertEqual(len(document.getElementsByTagName("polyline")), 2)

    def test_nothing_measured_is_no_picture(self):
        self.assertIsNone(lines("x", "names", {"p50_us": [(10, None), (100, None)]}))


class Report(unittest.TestCase):
    growth = Growth("growth-x", "About.", None, (10, 1000), "names", ("p50_us", "lost"), ("p50_us",))

    def test_a_growth_has_a_row_per_size_and_a_file_of_its_own(self):
        rounds = {10: [{"p50_us": 5, "lost": 0}], 1000: [{"p50_us": 6}]}
        with tempfile.TemporaryDirectory() as folder:
            report.write(folder, "compare", 0.1, [(self.growth, rounds)], {})
            self.assertFalse(path.exists(path.join(folder, "latest.md")))
            self.assertTrue(path.exists(path.join(folder, "growth-x.svg")))
            with open(path.join(folder, "growth.md")) as file:
                text = file.read()
        self.assertIn("| 1,000 | 6 |  |", text)
        self.assertIn("p50 in µs: 5 → 6", text)

    def test_quick_leaves_out_the_largest_size(self):
        options = lambda **given: SimpleNamespace(**{"quick": False, "peers": None, **given})
        self.assertEqual(self.growth.rows(options()), [10, 1000])
        self.assertEqual(self.growth.rows(options(quick=True)), [10])
        self.assertEqual(self.growth.rows(options(peers=["rslock"])), [])

    def test_the_word_growth_stands_for_all_of_them_and_none_is_quick(self):
        self.assertEqual(set(GROUPS["growth"]), set(GROWTH))
        self.assertTrue(all(not SCENARIOS[name].quick for name in GROUPS["growth"]))
        self.assertTrue(all(set(growth.charted) <= set(growth.columns) for growth in GROWTH.values()))


if __name__ == "__main__":
    unittest.main()
