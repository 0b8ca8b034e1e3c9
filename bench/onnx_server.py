#!/usr/bin/env python3
"""onnxruntime's side of bench/compare_torch.py --only inference: does with a problem what timing_server.cpp does, and
speaks as it does. Its network is the ONNX file that timing_server has written.
"""
import argparse
import json
import os
import resource
import sys
import threading
import time

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(json.dumps({"error": f"needs a Python with onnxruntime: {error}"}), flush=True)
    sys.exit(3)


def noise(ports, batch):
    """Inputs by name."""
    inputs = {}
    for port in ports:
        shape = [size if isinstance(size, int) else batch for size in port.shape]
        inputs[port.name] = (numpy.random.randint(0, 65, shape).astype(numpy.int64) if "int" in port.type
                             else numpy.random.randn(*shape).astype(numpy.float32))
    return inputs


def quantized(file):
    """The name of the file with the network in int8: activations as uint8, weights as int8 for each channel."""
    made = file.replace(".onnx", ".int8.onnx")
    if not os.path.exists(made):
        from onnxruntime import quantization
        prepared = file.replace(".onnx", ".prepared.onnx")
        quantization.shape_inference.quant_pre_process(file, prepared, skip_symbolic_shape=True)
        ports = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).get_inputs()
        examples = iter([noise(ports, 8)])

        class Examples(quantization.CalibrationDataReader):
            def get_next(self):
                return next(examples, None)

        quantization.quantize_static(prepared, made, Examples(), quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)
    return made


class Server:
    def __init__(self, threads, by_processor):
        self.threads, self.by_processor, self.run = threads, by_processor, None

    def prepare(self, problem):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        file = quantized(problem["file"]) if problem["pass"] == "int8" else problem["file"]
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        inputs = noise(session.get_inputs(), problem["batch"])
        self.run = lambda: session.run(None, inputs)

    def time(self, runs):
        clock = time.process_time if self.by_processor else time.perf_counter
        interrupted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        begin = clock()
        for _ in range(runs):
            self.run()
        return {"ms": 1e3 * (clock() - begin) / runs,
                "interruptions": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - interrupted}

    def latencies(self, callers, requests, pause):
        taken = [[] for _ in range(callers)]

        def call(own):
            for _ in range(requests // callers):
                begin = time.perf_counter()
                self.run()
                own.append(1e3 * (time.perf_counter() - begin))
                if pause > 0:
                    time.sleep(1e-3 * pause)
        threads = [threading.Thread(target=call, args=[own]) for own in taken]
        begin = time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = 1e3 * (time.process_time() - begin)
        return {"processor_ms": took / sum(map(len, taken)), "ms": sum(taken, [])}

    def answer(self, request):
        if request["command"] == "versions":
            return f"onnxruntime {onnxruntime.__version__}"
        if request["command"] == "peak":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if request["command"] == "prepare":
            return self.prepare(request)
        if request["command"] == "latencies":
            return self.latencies(request["callers"], request["requests"], request["pause"])
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
