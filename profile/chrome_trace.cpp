// A profile as a Chrome trace. It is written event by event, so that the text of a long one never stands in
// memory as a whole.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/profile/profile.h"

namespace pleat::profile {
namespace {

using Json = nlohmann::ordered_json;

/// Rows of the viewer are processes and threads. The host is one process, each GPU another.
constexpr int host_pid = 0;
int pid_of(Device device) { return device.is_cpu() ? host_pid : 1 + device.index; }

/// JSON has only finite numbers.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// Microseconds with the nanoseconds as three decimals, which a double holds exactly enough for years.
double microseconds(int64_t ns) { return static_cast<double>(ns) / 1000; }

const char* category(RangeKind kind) {
  if (kind == RangeKind::user || kind == RangeKind::step) return "user_annotation";
  return kind == RangeKind::module ? "module" : "cpu_op";
}

const char* category(DeviceActivity::Kind kind) {
  if (kind == DeviceActivity::Kind::memcpy) return "gpu_memcpy";
  return kind == DeviceActivity::Kind::memset ? "gpu_memset" : "kernel";
}

/// A row for each activity. Those of a stream that overlap (kernels launched early, rounded times) get rows
/// of their own.
struct Lanes {
  struct Row {
    Device device;
    uint64_t stream;
    int lane;  ///< of the stream
  };
  std::vector<Row> rows;
  std::vector<std::size_t> of_activity;

  explicit Lanes(const std::vector<DeviceActivity>& activities) {
    std::map<std::pair<int, uint64_t>, std::vector<std::pair<std::size_t, int64_t>>> streams;  // row, its end
    for (const DeviceActivity& activity : activities) {
      auto& lanes = streams[{activity.device.index, activity.stream}];
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const auto& known) { return known.second <= activity.start; });
      if (lane == lanes.end()) {
        rows.push_back({activity.device, activity.stream, static_cast<int>(lanes.size())});
        lane = lanes.insert(lane, {rows.size() - 1, 0});
      }
      lane->second = activity.end;
      of_activity.push_back(lane->first);
    }
  }
};

class Writer {
 public:
  /// `write` gets the text piece by piece.
  Writer(std::function<void(std::string_view)> write, const Profile& profile)
      : write_(std::move(write)), profile_(profile), lanes_(profile.activities) {}

  void write() {
    const Json head = {{"schemaVersion", 1},
                       {"displayTimeUnit", "ms"},
                       {"record_shapes", profile_.with_shapes ? 1 : 0},
                       {"with_flops", profile_.with_flops ? 1 : 0},
                       {"profile_memory", profile_.with_memory ? 1 : 0},
                       {"warnings", profile_.warnings},
                       {"deviceProperties", devices()}};
    std::string text = dump(head);
    text.pop_back();  // the closing brace
    text_ = text + ",\"traceEvents\":[";
    write_names();
    for (const Event& event : profile_.events) write_event(event);
    for (std::size_t i = 0; i < profile_.activities.size(); ++i) write_activity(i);
    write_memory();
    write_(text_ + "\n]}\n");
  }

 private:
  static std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void put(const Json& event) {
    text_ += (std::exchange(first_, false) ? "\n" : ",\n") + dump(event);
    if (text_.size() < 1 << 16) return;
    write_(text_);
    text_.clear();
  }

  Json devices() const {
    Json list = Json::array();
    if (!profile_.on_cuda) return list;
    for (int i = 0; i < cuda::device_count(); ++i) {
      const cuda::DeviceProperties& p = cuda::properties({DeviceType::cuda, i});
      list.push_back({{"id", i},
                      {"name", p.name},
                      {"totalGlobalMem", p.total_memory},
                      {"computeMajor", p.major},
                      {"computeMinor", p.minor},
                      {"numSms", p.multiprocessors}});
    }
    return list;
  }

  /// A process or a thread in the viewer.
  void put_name(const std::string& what, int pid, std::size_t tid, const std::string& name, int64_t place) {
    put({{"ph", "M"}, {"name", what + "_name"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
    put({{"ph", "M"},
         {"name", what + "_sort_index"},
         {"pid", pid},
         {"tid", tid},
         {"args", {{"sort_index", place}}}});
  }

  void write_names() {
    put_name("process", host_pid, 0, "CPU", 0);
    for (int thread = 0; thread < profile_.threads; ++thread) {
      const auto tid = static_cast<std::size_t>(thread);
      put_name("thread", host_pid, tid, "thread " + std::to_string(thread), thread);
    }
    std::set<int> named;
    for (std::size_t row = 0; row < lanes_.rows.size(); ++row) {
      const auto& [device, stream, lane] = lanes_.rows[row];
      if (named.insert(pid_of(device)).second)
        put_name("process", pid_of(device), 0, "GPU " + std::to_string(device.index), pid_of(device));
      const std::string more = lane == 0 ? "" : " (" + std::to_string(lane + 1) + ')';
      put_name("thread", pid_of(device), row, "stream " + std::to_string(stream) + more,
               static_cast<int64_t>(row));
    }
  }

  static Json event_args(const Event& event) {
    Json args = {{"External id", event.id}};
    if (!event.inputs.empty()) {
      Json dims = Json::array(), types = Json::array(), formats = Json::array(), devices = Json::array();
      for (const TensorInfo& input : event.inputs) {
        dims.push_back(input.defined ? Json(input.shape) : Json::array());
        types.push_back(input.defined ? name(input.dtype) : "");
        formats.push_back(input.defined ? name(input.format) : "");
        devices.push_back(input.defined ? name(input.device) : "");
      }
      args["Input Dims"] = std::move(dims);
      args["Input type"] = std::move(types);
      args["Memory formats"] = std::move(formats);
      args["Devices"] = std::move(devices);
    }
    if (!event.implementation.empty()) args["Implementation"] = event.implementation;
    if (event.flops != 0) args["FLOPs"] = number(event.flops);
    if (event.bytes != 0) args["Bytes"] = number(event.bytes);
    if (!event.module.empty()) args["Module"] = event.module;
    if (event.sequence != 0) args["Sequence number"] = event.sequence;
    if (event.cut) args["Cut"] = "it had not ended when recording did";
    return args;
  }

  void put_slice(const char* category, const std::string& name, int pid, std::size_t tid, int64_t start,
                 int64_t end, Json args) {
    put({{"ph", "X"},
         {"cat", category},
         {"name", name},
         {"pid", pid},
         {"tid", tid},
         {"ts", microseconds(start)},
         {"dur", microseconds(end - start)},
         {"args", std::move(args)}});
  }

  void write_event(const Event& event) {
    const auto tid = static_cast<std::size_t>(event.thread);
    put_slice(category(event.kind), event.name, host_pid, tid, event.start, event.end, event_args(event));
    // The end of a flow is tied to the slice around its time; the op has one slice, but may have several
    // nodes' ends.
    if (event.forward != none) put_flow("fwdbwd", profile_.events[event.forward], host_pid, tid, event.start);
  }

  /// From the beginning of an event to a slice.
  void put_flow(const char* name, const Event& from, int pid, std::size_t tid, int64_t time) {
    put_end("s", name, host_pid, static_cast<std::size_t>(from.thread), from.start);
    put_end("f", name, pid, tid, time);
    ++flow_;
  }

  void put_end(const char* phase, const char* name, int pid, std::size_t tid, int64_t time) {
    Json flow = {{"ph", phase},
                 {"id", flow_},
                 {"cat", name},
                 {"name", name},
                 {"pid", pid},
                 {"tid", tid},
                 {"ts", microseconds(time)}};
    if (*phase == 'f') flow["bp"] = "e";
    put(flow);
  }

  void write_activity(std::size_t index) {
    const DeviceActivity& activity = profile_.activities[index];
    const int pid = pid_of(activity.device);
    const std::size_t tid = lanes_.of_activity[index];
    Json args = {{"device", activity.device.index}, {"stream", activity.stream}};
    if (activity.correlation != 0) args["correlation"] = activity.correlation;
    if (activity.event != none) args["External id"] = profile_.events[activity.event].id;
    if (activity.kind == DeviceActivity::Kind::kernel) {
      args["grid"] = activity.grid;
      args["block"] = activity.block;
      args["registers per thread"] = activity.registers;
      args["shared memory"] = activity.shared_memory;
    } else if (activity.kind != DeviceActivity::Kind::measured) {
      args["bytes"] = activity.bytes;
      if (activity.duration() > 0)
        args["memory bandwidth (GB/s)"] =
            static_cast<double>(activity.bytes) / static_cast<double>(activity.duration());
    }
    put_slice(category(activity.kind), activity.name, pid, tid, activity.start, activity.end,
              std::move(args));
    if (activity.event != none) put_flow("ac2g", profile_.events[activity.event], pid, tid, activity.start);
  }

  void write_memory() {
    std::map<int, int64_t> total;
    for (const MemoryChange& change : profile_.memory) {
      int64_t& now = total[pid_of(change.device)];
      now += change.bytes;
      put({{"ph", "C"},
           {"name", "memory since the start"},
           {"pid", pid_of(change.device)},
           {"ts", microseconds(change.time)},
           {"args", {{"bytes", now}}}});
    }
  }

  std::function<void(std::string_view)> write_;
  std::string text_;  ///< not written yet
  const Profile& profile_;
  Lanes lanes_;
  bool first_ = true;
  uint64_t flow_ = 1;
};

}  // namespace

void write_chrome_trace(std::ostream& out, const Profile& profile) {
  Writer([&](std::string_view text) { out << text; }, profile).write();
}

void write_chrome_trace(const std::filesystem::path& file, const Profile& profile) {
  AtomicFile whole("export_chrome_trace", file);
  Writer([&](std::string_view text) { whole.write(text); }, profile).write();
  whole.commit();
}

void Profile::export_chrome_trace(const std::filesystem::path& file) const {
  write_chrome_trace(file, *this);
}

}  // namespace pleat::profile
