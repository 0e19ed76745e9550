#include "host/stores/sqlite/sqlite_keys.hpp"

#include <memory>

namespace sluice::queue::sqlite {

namespace {

// What one call works on. It is the call's and the store's together, for the caller may leave before the disk answers.

struct Beginning {
  std::vector<KeyClaim> claims;
  std::vector<KeyAnswer> answers;
};

}  // namespace

std::vector<KeyAnswer> SqliteKeys::begin(std::span<const KeyClaim> claims, Deadline deadline) {
  const auto beginning = std::make_shared<Beginning>(Beginning{{claims.begin(), claims.end()}, {}});
  const auto work = [beginning, queue = queue_, &clock = store_.clock()](Writer& writer) {
    // Where there is no queue there is nothing of it to be worked on either.
    const auto number = writer.records.queue(queue);
    beginning->answers = number ? writer.records.keys().claim(*number, beginning->claims, clock.wall_now())
                                : std::vector<KeyAnswer>(beginning->claims.size());
  };
  const auto undo = [beginning, queue = queue_](Writer& writer) {
    if (const auto number = writer.records.queue(queue)) {
      writer.records.keys().release(*number, beginning->claims);
    }
  };
  if (auto done = store_.write({.work = work, .flush = false, .undo = undo}, deadline); !done) {
    return std::vector<KeyAnswer>(claims.size(), KeyAnswer{.state = KeyState::failed, .error = done.error()});
  }
  return std::move(beginning->answers);
}

Result<void> SqliteKeys::release(std::span<const KeyClaim> claims, Deadline deadline) {
  const auto work = [claims = std::vector<KeyClaim>(claims.begin(), claims.end()), queue = queue_](Writer& writer) {
    if (const auto number = writer.records.queue(queue)) {
      writer.records.keys().release(*number, claims);
    }
  };
  return store_.write({.work = work, .flush = false}, deadline);
}

Result<KeyPage> SqliteKeys::list(const std::string& job, std::size_t limit, const std::string& cursor,
                                 Deadline deadline) {
  const auto page = std::make_shared<KeyPage>();
  auto done = store_.read(
      [page, queue = queue_, job, limit, cursor, now = store_.clock().wall_now()](RecordReader& reader) {
        if (const auto number = reader.queue(queue)) {
          *page = list_keys(reader.connection(), *number, job, limit, cursor, now);
        }
      },
      deadline);
  return done ? Result<KeyPage>(std::move(*page)) : done.error();
}

Result<std::optional<StoredKey>> SqliteKeys::get(const std::string& job, const std::string& key, Deadline deadline) {
  const auto found = std::make_shared<std::optional<StoredKey>>();
  auto done = store_.read(
      [found, queue = queue_, job, key, now = store_.clock().wall_now()](RecordReader& reader) {
        if (const auto number = reader.queue(queue)) {
          *found = find_key(reader.connection(), *number, job, key, now);
        }
      },
      deadline);
  return done ? Result<std::optional<StoredKey>>(std::move(*found)) : done.error();
}

Result<bool> SqliteKeys::forget(const std::string& job, const std::string& key, Deadline deadline) {
  const auto found = std::make_shared<bool>(false);
  const auto work = [found, queue = queue_, job, key, &clock = store_.clock()](Writer& writer) {
    const auto number = writer.records.queue(queue);
    *found = number && writer.records.keys().forget(*number, job, key, clock.wall_now());
  };
  SLUICE_PASS_ON(store_.write({.work = work}, deadline));
  return *found;
}

}  // namespace sluice::queue::sqlite
