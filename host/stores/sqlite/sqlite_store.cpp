#include "host/stores/sqlite/sqlite_store.hpp"

#include "host/stores/sqlite/embedded_store.hpp"

namespace sluice::queue {

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options, const Clock& clock, Random& random) {
  auto store = std::make_unique<sqlite::EmbeddedStore>(options, clock, random);
  if (auto opened = store->open(); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace sluice::queue
