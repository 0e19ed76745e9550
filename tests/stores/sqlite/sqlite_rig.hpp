#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "tests/support/desk.hpp"

namespace sluice::test {

/// A folder of its own, gone with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs SQL on a file behind the store's back; throws std::runtime_error. Returns the first column of every row.
std::vector<std::string> raw_sql(const std::string& file, const std::string& sql);

/// What is wrong with the tables of a store file, one line each: damage, a message in two places or in none, a counter
/// that does not fit, an id that is not found.
std::vector<std::string> broken_invariants(const std::string& file);

/// The sides of a file's queues, and the file with them.
struct OwnedQueues {
  std::unique_ptr<queue::Queues> owned;
};
class StoreDesk : private OwnedQueues, public Desk {
 public:
  explicit StoreDesk(std::unique_ptr<queue::Queues> opened) : OwnedQueues{std::move(opened)}, Desk(*owned) {}
};

/// Opens a store; throws std::runtime_error with its error. Not durable: these tests cut no
/// power.
std::unique_ptr<StoreDesk> open_store(const std::string& file, const Clock& clock, Random& random,
                                      queue::SqliteOptions options = {});

/// Every message of both halves, by id.
std::vector<std::string> all_ids(Desk& store, const std::string& queue);

}  // namespace sluice::test
