#include <memory>
#include <utility>

#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

class SqliteKeys final : public IdempotencyKeys {
 public:
  SqliteKeys(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  std::vector<KeyAnswer> begin(std::span<const KeyClaim> claims, Deadline deadline) override {
    const auto shared = std::make_shared<const std::vector<KeyClaim>>(claims.begin(), claims.end());
    const auto work = [shared, queue = queue_, &clock = store_.clock()](Writer& writer) {
      // Where there is no queue there is nothing of it to be worked on either.
      const std::int64_t number = writer.records.queue(queue);
      return number == 0 ? std::vector<KeyAnswer>(shared->size())
                         : writer.keys.claim(number, *shared, clock.wall_now());
    };
    const auto undo = [shared, queue = queue_](Writer& writer, const std::vector<KeyAnswer>&) {
      writer.keys.release(writer.records.queue(queue), *shared);
    };
    auto answers = store_.write<std::vector<KeyAnswer>>({.work = work, .flush = false, .undo = undo}, deadline);
    return answers
               ? std::move(*answers)
               : std::vector<KeyAnswer>(claims.size(), KeyAnswer{.state = KeyState::failed, .error = answers.error()});
  }

  Result<void> release(std::span<const KeyClaim> claims, Deadline deadline) override {
    const auto work = [claims = std::vector<KeyClaim>(claims.begin(), claims.end()), queue = queue_](Writer& writer) {
      writer.keys.release(writer.records.queue(queue), claims);
      return true;
    };
    SLUICE_PASS_ON(store_.write<bool>({.work = work, .flush = false}, deadline));
    return {};
  }

  Result<KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                       Deadline deadline) override {
    const auto work = [job, limit, cursor, now = store_.clock().wall_now()](RecordReader& reader, std::int64_t queue) {
      return list_keys(reader.connection(), queue, job, limit, cursor, now);
    };
    return store_.look<KeyPage>(queue_, work, deadline);
  }

  Result<std::optional<StoredKey>> get(const std::string& job, const std::string& key, Deadline deadline) override {
    const auto work = [job, key, now = store_.clock().wall_now()](RecordReader& reader, std::int64_t queue) {
      return find_key(reader.connection(), queue, job, key, now);
    };
    return store_.look<std::optional<StoredKey>>(queue_, work, deadline);
  }

  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override {
    const auto work = [queue = queue_, job, key, &clock = store_.clock()](Writer& writer) {
      return writer.keys.forget(writer.records.queue(queue), job, key, clock.wall_now());
    };
    return store_.write<bool>({.work = work}, deadline);
  }

 private:
  SharedStore& store_;
  const std::string queue_;
};

}  // namespace

std::unique_ptr<IdempotencyKeys> make_keys(SharedStore& store, std::string queue) {
  return std::make_unique<SqliteKeys>(store, std::move(queue));
}

}  // namespace sluice::queue::sqlite
