#include <iostream>
#include <sluice/testing.hpp>

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (!condition) {
    std::cerr << "failed: " << what << '\n';
    ++failures;
  }
}

}  // namespace

int main() {
  const sluice_handler& handler = sluice::testing::handler(sluice_plugin_v1, "my_plugin");

  sluice::testing::HandlerTest plain(handler, {{"separator", "+"}});
  const auto results = plain.handle_batch({{.body = "a"}, {.body = ""}, {.body = "b"}});
  expect(results.size() == 3, "each message has an outcome");
  expect(results.at(0).status == SLUICE_DONE && results.at(2).status == SLUICE_DONE, "messages are done");
  expect(results.at(1).status == SLUICE_REJECT, "an empty one is rejected, and harms no other");
  expect(plain.logged("a+b"), "the log has the bodies in one line");

  sluice::testing::HandlerTest wrong(handler, {{"volume", 11}});
  expect(!wrong.created(), "an option that is not declared keeps the job from starting");
  return failures == 0 ? 0 : 1;
}
