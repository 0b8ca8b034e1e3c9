#!/usr/bin/env python3
"""Faults in a training of several processes, at random moments:

    faults.py TRIES RANKS [--only FAULT,...] PROGRAM LAUNCHER [OPTION...]

Starts PROGRAM FAULT SECONDS (tests/dist/faults.cpp) under the launcher, TRIES times for each fault. The job must end
within the time that docs/clusters.md states, with the message of that fault, and must not end well. Prints a line for
each fault: the tries, and the longest time from the fault to the end.
"""
import random
import subprocess
import sys
import time

TIMEOUT = 3  # InitOptions::timeout_seconds in faults.cpp
FAREWELL = 7  # a failed rank's, until the launcher is told
PATIENCE = 4  # questions to the others, and last words
LAUNCH = 3  # of the launcher, to start and to stop processes

# What must be in the output (one of several), and how long the job may take after the fault.
FAULTS = {
    'none': ('steps', 0),
    'throw': ('rank {last} failed: pleat::ValueError: the data are gone', FAREWELL),
    'catch': ('error: the data are gone', FAREWELL),
    'exit': ('rank {last}: has left the program', FAREWELL),
    'kill': ('', FAREWELL),
    'abort': ('', FAREWELL),
    'hang': ('rank {last}: busy elsewhere since', TIMEOUT + PATIENCE),
    'stop': ('rank {last}: no answer|its data have not moved for 3 seconds', TIMEOUT + PATIENCE),
    'shape': ('rank {last}: all_reduce(sum) of [5] float32', FAREWELL),
    'order': ('rank {last}: barrier', FAREWELL),
    'batches': ('rank {last}: has left the program', FAREWELL),
    'model': ('rank {last} has parameter 0.weight: [33, 16] float32', FAREWELL),
}


def main():
    tries, ranks, *rest = sys.argv[1:]
    chosen = list(FAULTS)
    if rest[0] == '--only':
        chosen, rest = rest[1].split(','), rest[2:]
    program, *launcher = rest
    generator = random.Random(1)
    failed = False
    for fault in chosen:
        text, allowed = FAULTS[fault]
        longest = 0
        for _ in range(int(tries)):
            seconds = generator.uniform(0, 0.5)
            start = time.monotonic()
            command = [*launcher, program, fault, str(seconds)]
            limit = seconds + allowed + LAUNCH
            try:
                run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     timeout=limit + 30, check=False)
                output, status = run.stdout, run.returncode
            except subprocess.TimeoutExpired as error:
                output, status = (error.stdout or b'').decode(), 'none: it hung'
            took = time.monotonic() - start
            longest = max(longest, took - seconds)
            wanted = text.format(last=int(ranks) - 1).split('|')
            began = output.count('has begun') == int(ranks)
            fine = began and any(one in output for one in wanted) and (status == 0) == (fault == 'none') and took < limit
            if not fine:
                failed = True
                print(f'{fault} after {seconds:.3f} s: status {status}, {took:.1f} s of {limit:.1f} s; '
                      f'must print {wanted}, printed\n{output}')
        print(f'{fault}: {tries} tries, ended within {longest:.1f} s of the fault', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
