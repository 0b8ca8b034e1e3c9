#!/usr/bin/env python3
"""A training of several processes of which one is killed goes on from its last checkpoint, to the bit:

    killed.py PROGRAMS WORK RANKS LAUNCHER [OPTION...]

PROGRAMS is the folder of make_shapes and train_cifar, WORK a scratch folder.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time


def ranks_of(folder):
    """The processes of train_cifar that write to this folder."""
    found = []
    for process in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            words = (process / 'cmdline').read_bytes().split(b'\0')
        except OSError:
            continue  # it has ended
        if words[0].endswith(b'/train_cifar') and str(folder).encode() in words:
            found.append(int(process.name))
    return found


def results(folder):
    """What does not depend on time: metrics without the last columns, and the weights."""
    lines = (folder / 'metrics.csv').read_text().splitlines()
    return [line.split(',')[:6] for line in lines], (folder / 'weights.safetensors').read_bytes()


def main():
    programs, work = (pathlib.Path(argument) for argument in sys.argv[1:3])
    ranks, launcher = int(sys.argv[3]), sys.argv[4:]
    shutil.rmtree(work, ignore_errors=True)
    subprocess.run([programs / 'make_shapes', '--output', work / 'shapes', '--train', '400', '--test', '31'], check=True)

    def command(output, *options):
        return [*launcher, programs / 'train_cifar', *options, '--output', output]

    options = ['--data', work / 'shapes', '--model', 'small', '--epochs', '6', '--batch-size', str(4 * ranks), '--augment',
               'crop,flip', '--no-report', '--checkpoint-seconds', '0']
    subprocess.run(command(work / 'whole', *options), check=True)
    generator = random.Random()
    killed = 0
    for number in range(3):
        folder = work / f'killed{number}'
        job = subprocess.Popen(command(folder, *options))
        while not list(folder.glob('checkpoints/*.safetensors')):
            if job.poll() is not None:
                sys.exit('the job ended before its first checkpoint')
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.3))
        try:
            os.kill(generator.choice(ranks_of(folder)), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            pass  # all of it, or that rank, has ended
        status = job.wait(timeout=60)
        killed += status != 0
        print(f'job {number}: status {status}', flush=True)
        subprocess.run([*launcher, programs / 'train_cifar', '--resume', folder], check=True)
        if results(folder) != results(work / 'whole'):
            sys.exit('the run that was killed and resumed has other results')
    if killed == 0:
        sys.exit('no job was killed before its end')


if __name__ == '__main__':
    main()
