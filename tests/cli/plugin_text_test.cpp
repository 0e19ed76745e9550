#include "host/cli/views/plugin_text.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "sluice/async.h"
#include "sluice/batch.h"

namespace sluice::cli {
namespace {

template <typename Feature>
const void* feature_if(bool asked) {
  static Feature feature{};
  feature.struct_size = sizeof(Feature);
  return asked ? &feature : nullptr;
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
  const sluice_handler plain = handler_with(nullptr);
  const sluice_handler batch =
      handler_with([](const char* id) { return feature_if<sluice_batch>(std::strcmp(id, SLUICE_BATCH_1) == 0); });
  const sluice_handler async =
      handler_with([](const char* id) { return feature_if<sluice_async>(std::strcmp(id, SLUICE_ASYNC_1) == 0); });
  EXPECT_EQ(handler_text(plain, kind_of(plain)).find("  handler mail\n"), 0U);
  EXPECT_EQ(handler_text(batch, kind_of(batch)).find("  batch handler mail\n"), 0U);
  EXPECT_EQ(handler_text(async, kind_of(async)).find("  async handler mail\n"), 0U);
}

}  // namespace
}  // namespace sluice::cli
