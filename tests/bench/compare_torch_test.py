"""Tests of what bench/compare_torch.py reads and says; none needs PyTorch."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)

import compare_report  # noqa: E402
import compare_torch  # noqa: E402
import conv_layers  # noqa: E402


def result(section="ops", group="math", name="exp 4000", which="forward", format="contiguous", pleat=1.0, torch=2.0):
    sides = {side: {"median_ms": median, "lower_quartile_ms": median, "upper_quartile_ms": median, "disturbed": False}
             for side, median in (("pleat", pleat), ("keep", torch))}
    return {"section": section, "group": group, "name": name, "format": format, "pass": which} | sides | {
        "ratio": {"keep": torch / pleat}}


class Layers(unittest.TestCase):
    def read(self, row):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("name,dims,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,dw,od,oh,ow,transposed\n" + row)
            file.flush()
            return conv_layers.read_layers(file.name, 16)

    def test_all_of_the_file(self):
        layers = conv_layers.read_layers(os.path.join(BENCH, "layers.csv"))
        self.assertGreater(len(layers), 100)
        self.assertEqual(len(layers), len({name for name, _ in layers}))
        self.assertGreaterEqual(len({name.split(":")[0] for name, _ in layers}), 8)

    def test_convolution(self):
        [(name, conv)] = self.read("a:b,2,64,2,8,6,1,9,7,1,3,1,1,2,1,0,1,0,1,1,1,1,5,7,0")
        self.assertEqual(name, "a:b")
        self.assertEqual(conv, {"input": [16, 8, 9, 7], "weight": [6, 4, 3, 1], "stride": [2, 1], "padding": [1, 0],
                                "dilation": [1, 1], "groups": 2})
        self.assertAlmostEqual(1e9 * conv_layers.gflop(conv), 2 * 16 * 5 * 7 * 6 * 4 * 3)

    def test_transposed(self):
        [(_, conv)] = self.read("t,2,4,1,8,6,1,10,7,1,3,3,1,2,2,0,1,1,1,1,1,1,5,4,1")
        self.assertEqual(conv["input"], [4, 6, 5, 4])
        self.assertEqual(conv["weight"], [6, 8, 3, 3])
        self.assertEqual(conv["output_padding"], [1, 0])
        self.assertAlmostEqual(1e9 * conv_layers.gflop(conv), 2 * 4 * 5 * 4 * 6 * 8 * 9)

    def test_wrong_rows(self):
        with self.assertRaisesRegex(ValueError, "the output would be \\[5, 7\\], not \\[5, 6\\]"):
            self.read("a,2,64,2,8,6,1,9,7,1,3,1,1,2,1,0,1,0,1,1,1,1,5,6,0")
        with self.assertRaisesRegex(ValueError, "not a convolution"):
            self.read("a,2,many,2,8,6,1,9,7,1,3,1,1,2,1,0,1,0,1,1,1,1,5,7,0")


class Problems(unittest.TestCase):
    def test_formats(self):
        def has(**problem):
            return compare_torch.has_formats({"section": "conv", "group": ""} | problem)
        self.assertTrue(has(stride=[1, 1]))
        self.assertFalse(has(stride=[1]))
        self.assertTrue(has(section="step", group="unet"))
        self.assertFalse(has(section="step", group="chars"))
        self.assertTrue(has(section="ops", operands=[{"shape": [4]}, {"shape": [1, 2, 3, 4]}]))
        self.assertFalse(has(section="ops", operands=[{"shape": [4, 4]}]))


class Report(unittest.TestCase):
    def test_means_of_ops_with_and_without_trivial_rows(self):
        rows = [result(torch=4.0), result(name="sin 4000", pleat=0.001, torch=0.009)]
        means = {s["group"]: s["geometric_mean"] for s in compare_report.summarise(rows)}
        self.assertAlmostEqual(means["all"], 6.0)
        self.assertAlmostEqual(means["over 20 us"], 4.0)

    def test_rows_that_lose_worst_first(self):
        rows = [result(name="good"), result(name="bad", torch=0.5), result(name="worse", torch=0.1),
                result(name="trivial", pleat=0.01, torch=0.001)]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            compare_report.report(rows)
        losing = out.getvalue().split("Below 0.7")[1]
        self.assertLess(losing.index("worse"), losing.index("bad"))
        self.assertNotIn("good", losing)
        self.assertNotIn("trivial", losing)

    def test_what_threads_gain_is_no_race(self):
        rows = [result(name=name, pleat=ms) for name, ms in (("long", 10.0), ("short", 0.1))]
        for row, ratio in zip(rows, (1.7, 0.5)):
            row["one_thread"] = row.pop("keep")
            row["ratio"] = {"one_thread": ratio}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            compare_report.report(rows)
        self.assertNotIn("Below", out.getvalue())

    def test_another_build_may_lose(self):
        row = result(torch=0.5)
        row["other"] = row.pop("keep")
        row["ratio"] = {"other": 0.5}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            compare_report.report([row])
        self.assertIn("Below 0.7", out.getvalue())


class Options(unittest.TestCase):
    def sides(self, *arguments):
        with unittest.mock.patch.object(sys, "argv", ["compare_torch.py", "--program", sys.executable, *arguments]):
            return compare_torch.make_sides(compare_torch.options())

    def test_another_build(self):
        own, other = self.sides("--against", "other", "--other", sys.executable, "--threads", "2")
        self.assertEqual((own.name, other.name), ("pleat", "other"))
        self.assertEqual(own.command, other.command)
        for wrong in ["--against", "other"], ["--other", sys.executable], ["--against", "other", "--other", "none"]:
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                self.sides(*wrong)
            self.assertIn("--other: ", said.getvalue())

    def test_onnxruntime_is_for_inference_alone(self):
        own, other = self.sides("--only", "inference", "--against", "onnxruntime")
        self.assertIn("onnx_server.py", other.command[1])
        for wrong in ["--against", "onnxruntime"], ["--only", "step,inference"], \
                ["--only", "inference", "--against", "keep,onnxruntime"]:
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                self.sides(*wrong)
            self.assertRegex(said.getvalue(), "--(only|against): ")


if __name__ == "__main__":
    unittest.main()
