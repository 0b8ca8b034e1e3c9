"""Pleat as a Conan package, with the libraries that the system has (scripts/setup.sh installs them):

    conan create packaging/conan --build=missing -s compiler.cppstd=20 [-o "pleat/*:shared=True"]
"""
import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDERS = ("autograd", "bench", "cmake", "core", "data", "dist", "examples", "inference", "io", "models", "nn", "onnx",
           "op_cases", "ops", "plot", "profile", "train")


class Pleat(ConanFile):
    name = "pleat"
    license = "Apache-2.0"
    description = "Deep learning in C++20 that shows what a convolution costs"
    topics = ("deep-learning", "autograd", "convolution")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(ROOT, "CMakeLists.txt"))
        self.version = text.split("project(pleat VERSION ")[1].split()[0]

    def export_sources(self):
        for folder in FOLDERS:
            copy(self, f"{folder}/*", ROOT, self.export_sources_folder)
        for file in ("CMakeLists.txt", "CMakePresets.json", "pleat.h", "LICENSE", "CHANGELOG.md"):
            copy(self, file, ROOT, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("NATIVE", "CUDA", "ONEDNN", "MPI", "BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "CPU_VARIANTS"):
            toolchain.cache_variables[f"PLEAT_{option}"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Pleat's own PleatConfig.cmake says what a program links.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "Pleat")]
        self.cpp_info.libs = ["pleat"]
