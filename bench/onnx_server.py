#!/usr/bin/env python3
"""onnxruntime's side of bench/compare_torch.py --only inference: does with a problem what timing_server.cpp does, and
speaks as it does. Its network is the ONNX file that timing_server has written.
"""
import argparse
import json
import resource
import sys
import time

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(json.dumps({"error": f"needs a Python with onnxruntime: {error}"}), flush=True)
    sys.exit(3)


class Server:
    def __init__(self, threads, by_processor):
        self.threads, self.by_processor, self.run = threads, by_processor, None

    def prepare(self, problem):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = onnxruntime.InferenceSession(problem["file"], options, providers=["CPUExecutionProvider"])
        inputs = {}
        for port in session.get_inputs():
            shape = [size if isinstance(size, int) else problem["batch"] for size in port.shape]
            inputs[port.name] = (numpy.random.randint(0, 65, shape).astype(numpy.int64) if "int" in port.type
                                 else numpy.random.randn(*shape).astype(numpy.float32))
        self.run = lambda: session.run(None, inputs)

    def time(self, runs):
        clock = time.process_time if self.by_processor else time.perf_counter
        interrupted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        begin = clock()
        for _ in range(runs):
            self.run()
        return {"ms": 1e3 * (clock() - begin) / runs,
                "interruptions": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - interrupted}

    def answer(self, request):
        if request["command"] == "versions":
            return f"onnxruntime {onnxruntime.__version__}"
        if request["command"] == "peak":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if request["command"] == "prepare":
            return self.prepare(request)
        return self.time(request["runs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu"])
    parser.add_argument("--precision")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", default="wall", choices=("wall", "processor"))
    args = parser.parse_args()
    server = Server(args.threads, args.clock == "processor")
    for line in sys.stdin:
        try:
            print(json.dumps({"result": server.answer(json.loads(line))}), flush=True)
        except Exception as error:  # whatever it is, the other side is told
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
