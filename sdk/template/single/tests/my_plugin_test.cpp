#include <chrono>
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

  sluice::testing::HandlerTest plain(handler, {{"suffix", "?"}});
  expect(plain.handle({.body = "hello"}).status == SLUICE_DONE, "a message is done");
  expect(plain.logged("HELLO?"), "the log has the text in capitals");
  expect(plain.handle({.body = ""}).status == SLUICE_REJECT, "an empty message is rejected");

  // Time stands still but for the handler's own waits, so a long pause costs a test nothing.
  sluice::testing::HandlerTest slow(handler, {{"pause", "30s"}});
  expect(slow.handle({.body = "hello"}).elapsed == std::chrono::seconds(30), "the handler rests");
  slow.stop_after(std::chrono::seconds(10));
  expect(slow.handle({.body = "hello"}).status == SLUICE_RELEASE, "a stop ends the rest and gives the message back");

  sluice::testing::HandlerTest wrong(handler, {{"volume", 11}});
  expect(!wrong.created(), "an option that is not declared keeps the job from starting");
  return failures == 0 ? 0 : 1;
}
