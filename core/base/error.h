#pragma once

#include <stdexcept>
#include <string>

namespace pleat {

/// Base of every exception that Pleat throws. The message says which operation, what must hold, what it got
/// and, where one is known, the remedy. An operation that throws has changed none of its arguments.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sizes that do not fit: ranks, broadcasting, channels, sizes whose product overflows.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// An element type that an operation does not take.
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// Tensors on different devices, or a device that this build or machine does not have.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A GPU that this process can use no longer, for instance after a kernel read memory that is not its own.
/// What was on it is lost, and every later call fails, too: end the process and start again from a
/// checkpoint. Tensors on the CPU stay valid, so a checkpoint can still be written from them.
class DeviceLostError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An option whose value makes no sense: a stride of 0, a negative learning rate.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// An index outside its range.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// A misuse of the tape: backward through a released graph, a saved tensor that was changed in place.
class AutogradError : public Error {
 public:
  using Error::Error;
};

/// A NaN where anomaly mode watches for it.
class NumericError : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be had. What was allocated before stays valid: a smaller batch may fit.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or whose content is not what its format demands.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace pleat
