#include <gtest/gtest.h>

#include "host/observe/http_endpoint.hpp"

namespace sluice::observe {
namespace {

TEST(ProbeResult, WithoutComponentsIsItsText) {
  EXPECT_EQ(probe_text({true, "ready", {}}), "ready\n");
  EXPECT_EQ(probe_json({true, "ready", {}}), "{\"status\":\"ok\",\"text\":\"ready\",\"components\":{}}\n");
}

TEST(ProbeResult, NamesComponentsBelowIt) {
  const ProbeResult result{
      false, "not ready", {{"store", true, "ok"}, {"sender sentry", false, "it answered \"503\"\nnow"}}};
  EXPECT_EQ(probe_text(result), "not ready\nstore: ok\nsender sentry: it answered \"503\"\\nnow\n");
  EXPECT_EQ(probe_json(result),
            "{\"status\":\"failing\",\"text\":\"not ready\",\"components\":{"
            "\"store\":{\"status\":\"ok\",\"text\":\"ok\"},"
            "\"sender sentry\":{\"status\":\"failing\",\"text\":\"it answered \\\"503\\\"\\nnow\"}}}\n");
}

}  // namespace
}  // namespace sluice::observe
