#include "host/cli/views/plugin_text.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "sluice/async.h"
#include "sluice/batch.h"

namespace sluice::cli {
namespace {

const void* batch_if(bool asked) {
  static const sluice_batch batch = [] {
    sluice_batch made{};
    made.struct_size = sizeof(made);
    made.handle = [](auto...) {};
    return made;
  }();
  return asked ? &batch : nullptr;
}

const void* async_if(bool asked) {
  static const sluice_async async = [] {
    sluice_async made{};
    made.struct_size = sizeof(made);
    made.begin = [](auto...) {};
    return made;
  }();
  return asked ? &async : nullptr;
}

sluice_handler handler_with(const void* (*extension)(const char* id)) {
  sluice_handler handler{};
  handler.struct_size = sizeof(handler);
  handler.name = "mail";
  handler.extension = extension;
  return handler;
}

TEST(PluginText, TellsBatchAndAsyncHandlersFromOthers) {
  EXPECT_EQ(kind_of(std::vector<std::string>{"sluice.effects/1"}), "handler");
  EXPECT_EQ(kind_of({"sluice.effects/1", SLUICE_BATCH_1}), "batch");
  EXPECT_EQ(kind_of(std::vector<std::string>{SLUICE_ASYNC_1}), "async");
  EXPECT_EQ(kind_of({SLUICE_BATCH_1, SLUICE_ASYNC_1}), "async") << "as a host runs one that answers both";
  const sluice_handler plain = handler_with(nullptr);
  const sluice_handler batch =
      handler_with([](const char* id) { return batch_if(std::strcmp(id, SLUICE_BATCH_1) == 0); });
  const sluice_handler async =
      handler_with([](const char* id) { return async_if(std::strcmp(id, SLUICE_ASYNC_1) == 0); });
  const sluice_handler both = handler_with([](const char* id) {
    return std::strcmp(id, SLUICE_BATCH_1) == 0 ? batch_if(true) : async_if(std::strcmp(id, SLUICE_ASYNC_1) == 0);
  });
  EXPECT_EQ(kind_of(both), "async");
  EXPECT_EQ(handler_text(plain, kind_of(plain)).find("  handler mail\n"), 0U);
  EXPECT_EQ(handler_text(batch, kind_of(batch)).find("  batch handler mail\n"), 0U);
  EXPECT_EQ(handler_text(async, kind_of(async)).find("  async handler mail\n"), 0U);
}

}  // namespace
}  // namespace sluice::cli
