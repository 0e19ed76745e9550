#include "host/isolation/runner_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/text/utf8.hpp"

namespace sluice::isolation {
namespace {

Error no_memory(std::size_t size, int code) {
  return Error(ErrorCode::full, "no shared memory of " + std::to_string(size) +
                                    " bytes for a handler's process: " + std::strerror(code));
}

char* map(int descriptor, std::size_t size) {
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

constexpr std::uint32_t kRoom = RunnerControl::kRoom;
constexpr Duration kRoomLook = std::chrono::milliseconds(50);

std::uint32_t padded(std::uint32_t size) { return (size + 7U) & ~7U; }

/// Copies over the ring's end, where it must.
void copy_in(RunnerControl& control, std::uint32_t at, const char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(data, first, control.room.data() + offset);
  std::copy_n(data + first, size - first, control.room.data());
}

void copy_out(const RunnerControl& control, std::uint32_t at, char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(control.room.data() + offset, first, data);
  std::copy_n(control.room.data(), size - first, data + first);
}

// Each kind of record has one list of its fields (`fields`), walked to count its bytes, to write and to read them.

/// Writes numbers as they lie in memory, and text behind its length; without a place to write to it counts only.
class Writer {
 public:
  static constexpr bool kReads = false;

  explicit Writer(char* at = nullptr) : at_(at) {}

  template <typename Number>
  void number(Number value) {
    put(&value, sizeof(value));
  }
  template <typename Enum>
  void enumerator(Enum value, Enum) {
    number(static_cast<std::uint8_t>(value));
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    put(value.data(), value.size());
  }
  template <typename List, typename Each>
  void list(const List& values, std::size_t, Each each) {
    number(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) {
      each(value);
    }
  }
  template <typename Map>
  void map(const Map& values) {
    number(static_cast<std::uint64_t>(values.size()));
    for (const auto& [name, value] : values) {
      text(name);
      text(value);
    }
  }
  std::size_t size() const { return size_; }

 private:
  void put(const void* bytes, std::size_t size) {
    if (at_ != nullptr && size > 0) {
      std::memcpy(at_ + size_, bytes, size);
    }
    size_ += size;
  }

  char* const at_;
  std::size_t size_ = 0;
};

/// Reads the same, within its bytes whatever they say.
class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number>
  void number(Number& value) {
    if (bytes_.size() < sizeof(value)) {
      good_ = false;
      value = {};
      return;
    }
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
  }
  /// Not every byte is one.
  void number(bool& value) {
    std::uint8_t read = 0;
    number(read);
    good_ = good_ && read <= 1;
    value = read == 1;
  }
  template <typename Enum>
  void enumerator(Enum& value, Enum last) {
    std::uint8_t read = 0;
    number(read);
    good_ = good_ && read <= static_cast<std::uint8_t>(last);
    value = static_cast<Enum>(read);
  }
  void text(std::string& value) { value = view(); }
  template <typename List, typename Each>
  void list(List& values, std::size_t most, Each each) {
    const std::uint64_t size = length();
    good_ = good_ && size <= most;
    for (std::uint64_t i = 0; i < size && good_; ++i) {
      each(values.emplace_back());
    }
  }
  template <typename Map>
  void map(Map& values) {
    values.clear();
    const std::uint64_t size = length();
    for (std::uint64_t i = 0; i < size && good_; ++i) {
      const std::string_view name = view();
      values.insert_or_assign(std::string(name), std::string(view()));
    }
  }
  void refuse() { good_ = false; }
  bool complete() const { return good_ && bytes_.empty(); }
  bool more() const { return good_ && !bytes_.empty(); }

 private:
  std::uint64_t length() {
    std::uint64_t size = 0;
    number(size);
    return size;
  }
  std::string_view view() {
    const std::uint64_t size = length();
    good_ = good_ && size <= bytes_.size();
    const std::string_view value = bytes_.substr(0, good_ ? size : 0);
    bytes_.remove_prefix(value.size());
    return value;
  }

  std::string_view bytes_;
  bool good_ = true;
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

template <typename Archive, typename Optional, typename Each>
void optional(Archive& io, Optional& value, Each each) {
  bool there = value.has_value();
  io.number(there);
  if constexpr (Archive::kReads) {
    value = there ? Optional(std::in_place) : Optional();
  }
  if (there) {
    each(*value);
  }
}

template <typename Archive, typename Options>
void option_fields(Archive& io, Options& options) {
  io.list(options, kAny, [&io](auto& value) {
    io.text(value.name);
    io.number(value.type);
    io.text(value.string);
    io.number(value.integer);
    io.number(value.number);
    io.list(value.items, kAny, [&io](auto& item) { io.text(item); });
  });
}

template <typename Archive, typename Setup>
void fields(Archive& io, Setup& setup) {
  io.text(setup.job);
  io.text(setup.plugin);
  io.text(setup.handler);
  io.number(setup.memory);
  io.number(setup.effects);
  io.number(setup.keeps_key);
  option_fields(io, setup.options);
  io.list(setup.arounds, config::kMaxArounds, [&io](auto& around) {
    io.text(around.plugin);
    io.text(around.handler);
    option_fields(io, around.options);
  });
}

/// What a message is made of; `first_result` is a text, empty where there is none.
template <typename Archive, typename Message, typename Queue, typename Attempts>
void message_fields(Archive& io, Message& message, Queue& queue, Attempts& max_attempts) {
  io.text(queue);
  io.number(max_attempts);
  io.number(message.attempt);
  if constexpr (Archive::kReads) {
    std::int64_t sent_at = 0;
    io.number(sent_at);
    message.sent_at = WallTime(Duration(sent_at));
  } else {
    io.number(static_cast<std::int64_t>(message.sent_at.time_since_epoch().count()));
  }
  io.text(message.id);
  io.text(message.content_type);
  io.text(message.group);
  io.map(message.attributes);
  io.text(message.body);
  io.text(message.checkpoint);
}

template <typename Archive, typename Span>
void duration(Archive& io, Span& span) {
  auto count = static_cast<std::int64_t>(span.count());
  io.number(count);
  if constexpr (Archive::kReads) {
    span = Duration(count);
    if (count < 0) {
      io.refuse();
    }
  }
}

template <typename Archive, typename Emitted>
void emitted_fields(Archive& io, Emitted& emitted) {
  auto& message = emitted.message;
  for (auto* text :
       {&emitted.queue, &message.id, &message.body, &message.content_type, &message.group, &message.dedup_id}) {
    io.text(*text);
  }
  io.map(message.attributes);
  duration(io, message.delay);
  duration(io, message.dedup_window);
  io.enumerator(message.priority, queue::Priority::low);
  io.number(emitted.made_id);
}

template <typename Variant, std::size_t... kIndexes>
void emplace(Variant& value, std::size_t index, std::index_sequence<kIndexes...>) {
  ((index == kIndexes ? static_cast<void>(value.template emplace<kIndexes>()) : void()), ...);
}

template <typename Archive, typename Variant, typename Each>
void variant(Archive& io, Variant& value, Each each) {
  auto index = static_cast<std::uint8_t>(value.index());
  io.number(index);
  if constexpr (Archive::kReads) {
    constexpr std::size_t kKinds = std::variant_size_v<Variant>;
    if (index >= kKinds) {
      io.refuse();
    }
    emplace(value, index, std::make_index_sequence<kKinds>());
  }
  std::visit(each, value);
}

template <typename Archive, typename Value>
void value_fields(Archive& io, Value& value) {
  using Plain = std::remove_const_t<Value>;
  if constexpr (std::is_arithmetic_v<Plain>) {
    io.number(value);
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    io.text(value);
  } else if constexpr (std::is_same_v<Plain, queue::SqlBlob>) {
    io.text(value.bytes);
  }
}

template <typename Archive, typename Write>
void write_fields(Archive& io, Write& write) {
  if constexpr (std::is_same_v<std::remove_const_t<Write>, queue::ItemWrite>) {
    io.enumerator(write.action, queue::ItemAction::check);
    for (auto* text : {&write.table, &write.item, &write.update, &write.condition, &write.values}) {
      io.text(*text);
    }
    io.map(write.names);
  } else {
    io.text(write.statement);
    optional(io, write.rows, [&io](auto& rows) { io.number(rows); });
    io.list(write.parameters, kAny,
            [&io](auto& parameter) { variant(io, parameter, [&io](auto& value) { value_fields(io, value); }); });
  }
}

template <typename Archive, typename Effects>
void effect_fields(Archive& io, Effects& effects) {
  optional(io, effects.key, [&io](auto& key) { io.text(key.result); });
  io.list(effects.messages, queue::kMostEffects, [&io](auto& emitted) { emitted_fields(io, emitted); });
  io.list(effects.writes, queue::kMostEffects, [&io](auto& effect) {
    io.text(effect.label);
    io.enumerator(effect.on_refusal, queue::OnRefusal::reject);
    variant(io, effect.write, [&io](auto& write) { write_fields(io, write); });
  });
}

template <typename Archive, typename Numbers>
void numbers(Archive& io, Numbers& values) {
  io.list(values, SLUICE_METRIC_BUCKETS + 1, [&io](auto& value) { io.number(value); });
}

template <typename Archive, typename Change>
void change_fields(Archive& io, Change& change) {
  io.number(change.number);
  io.number(change.fresh);
  if (change.fresh) {
    io.number(change.kind);
    io.text(change.name);
    io.text(change.help);
    numbers(io, change.bounds);
    io.list(change.labels, SLUICE_METRIC_LABELS, [&io](auto& label) {
      io.text(label.first);
      io.text(label.second);
    });
  }
  io.number(change.set);
  io.number(change.value);
  numbers(io, change.counts);
}

void message_record(Writer& io, const queue::Message& message, const MessageFacts& facts) {
  io.number(facts.first_result != nullptr);
  io.text(facts.first_result != nullptr ? std::string_view(*facts.first_result) : std::string_view());
  message_fields(io, message, facts.queue, facts.max_attempts);
}

/// Counts the bytes, and then writes them.
template <typename Put>
std::string packed(Put put) {
  Writer measure;
  put(measure);
  std::string bytes(measure.size(), '\0');
  Writer writer(bytes.data());
  put(writer);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(const char* name, std::size_t size) {
  Descriptor made(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool sized = made.open() && ::ftruncate(made.get(), static_cast<off_t>(size)) == 0 &&
                     ::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  char* const data = sized ? map(made.get(), size) : nullptr;
  if (data == nullptr) {
    return no_memory(size, errno);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(made), data, size));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::attach(int descriptor) {
  const Descriptor given(descriptor);
  struct stat status {};
  const bool sized = ::fstat(descriptor, &status) == 0 && status.st_size > 0;
  char* const data = sized ? map(descriptor, static_cast<std::size_t>(status.st_size)) : nullptr;
  if (data == nullptr) {
    return no_memory(0, errno);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(Descriptor(), data, static_cast<std::size_t>(status.st_size)));
}

Result<void> SharedMemory::grow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  if (::ftruncate(descriptor_.get(), static_cast<off_t>(size)) != 0) {
    return no_memory(size, errno);
  }
  return follow(size);
}

Result<void> SharedMemory::follow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  void* const moved = ::mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) {
    return no_memory(size, errno);
  }
  data_ = static_cast<char*>(moved);
  size_ = size;
  return {};
}

void SharedMemory::forget_beyond(std::size_t kept) {
  if (size_ > kept) {
    ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kept),
                static_cast<off_t>(size_ - kept));
  }
}

void CheckpointAnswer::put(const queue::SettleResult& result) {
  const std::string_view said = cut_utf8(result.error.message(), kRoom);
  status = result.status;
  code = result.error.code();
  reject = result.reject;
  size = static_cast<std::uint32_t>(said.size());
  std::copy(said.begin(), said.end(), text.begin());
}

queue::SettleResult CheckpointAnswer::get() const {
  return {status, Error(code, std::string(text.data(), std::min<std::size_t>(size, kRoom))), reject};
}

bool EventWriter::write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text,
                        std::size_t message) noexcept {
  const EventHead head{static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), kEventTextLimit)), kind, level,
                       number, message};
  const std::uint32_t size = sizeof(head) + padded(head.size);
  const std::uint32_t at = control_.produced.load(std::memory_order_relaxed);
  if (size > kRoom - (at - control_.consumed.load(std::memory_order_acquire))) {
    return false;
  }
  copy_in(control_, at, reinterpret_cast<const char*>(&head), sizeof(head));
  copy_in(control_, at + sizeof(head), text.data(), head.size);
  control_.produced.store(at + size, std::memory_order_release);
  control_.events.fetch_add(1);
  if (control_.host_sleeps.load() != 0) {
    futex_wake(control_.events);
  }
  return true;
}

void EventWriter::wait_for_room() noexcept {
  const std::uint32_t seen = control_.consumed.load();
  control_.room_wanted.store(1);
  if (control_.produced.load() - seen > kRoom / 2) {
    futex_wait(control_.consumed, seen, kRoomLook);
  }
  control_.room_wanted.store(0);
}

EventReader::Found EventReader::read(EventHead& head, std::string& text) {
  const std::uint32_t at = control_.consumed.load(std::memory_order_relaxed);
  const std::uint32_t there = control_.produced.load(std::memory_order_acquire) - at;
  if (there == 0) {
    return Found::nothing;
  }
  if (there > kRoom || there < sizeof(head)) {
    return Found::nonsense;
  }
  copy_out(control_, at, reinterpret_cast<char*>(&head), sizeof(head));
  if (head.size > kEventTextLimit || sizeof(head) + padded(head.size) > there) {
    return Found::nonsense;
  }
  text.resize(head.size);
  copy_out(control_, at + sizeof(head), text.data(), head.size);
  control_.consumed.store(at + static_cast<std::uint32_t>(sizeof(head)) + padded(head.size));
  if (control_.room_wanted.load() != 0) {
    futex_wake(control_.consumed);
  }
  return Found::event;
}

std::string pack_setup(const RunnerSetup& setup) {
  return packed([&setup](Writer& io) { fields(io, setup); });
}

std::optional<RunnerSetup> unpack_setup(std::string_view bytes) {
  Reader from(bytes);
  RunnerSetup setup;
  fields(from, setup);
  return from.complete() ? std::optional(std::move(setup)) : std::nullopt;
}

std::size_t packed_size(const queue::Message& message, const MessageFacts& facts) {
  Writer measure;
  message_record(measure, message, facts);
  return sizeof(std::uint64_t) + measure.size();
}

char* pack_message(const queue::Message& message, const MessageFacts& facts, char* bytes) {
  Writer writer(bytes + sizeof(std::uint64_t));
  message_record(writer, message, facts);
  const std::uint64_t size = writer.size();
  std::memcpy(bytes, &size, sizeof(size));
  return bytes + sizeof(size) + size;
}

bool unpack_message(std::string_view& bytes, WireMessage& into) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof(size)) {
    return false;
  }
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) {
    return false;
  }
  Reader from(bytes.substr(0, size));
  bytes.remove_prefix(size);
  bool duplicate = false;
  std::string first_result;
  from.number(duplicate);
  from.text(first_result);
  into.first_result = duplicate ? std::make_shared<const std::string>(std::move(first_result)) : nullptr;
  message_fields(from, into.message, into.queue, into.max_attempts);
  return from.complete();
}

std::vector<std::string> pack_changes(const std::vector<plugin::MetricChange>& changes) {
  std::vector<std::string> pieces;
  for (const plugin::MetricChange& change : changes) {
    const std::string bytes = packed([&change](Writer& io) { change_fields(io, change); });
    if (pieces.empty() || pieces.back().size() + bytes.size() > kEventTextLimit) {
      pieces.emplace_back();
    }
    pieces.back() += bytes;
  }
  return pieces;
}

std::optional<std::vector<plugin::MetricChange>> unpack_changes(std::string_view bytes) {
  Reader from(bytes);
  std::vector<plugin::MetricChange> changes;
  while (from.more()) {
    change_fields(from, changes.emplace_back());
  }
  return from.complete() ? std::optional(std::move(changes)) : std::nullopt;
}

std::string pack_effects(const queue::Effects& effects) {
  return packed([&effects](Writer& io) { effect_fields(io, effects); });
}

std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes) {
  auto effects = std::make_shared<queue::Effects>();
  Reader from(bytes);
  effect_fields(from, *effects);
  const bool few = effects->messages.size() + effects->writes.size() < queue::kMostEffects;
  return from.complete() && few ? effects : nullptr;
}

}  // namespace sluice::isolation
