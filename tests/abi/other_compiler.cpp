// Runs a plugin of another compiler's: this program is the host here, with the SDK's test kit. Not optimised, so that
// it shows too what a coroutine takes of the stack then.
//
//   other_compiler PLUGIN.so
#include <dlfcn.h>

#include <cstdio>
#include <exception>
#include <sluice/testing.hpp>
#include <stdexcept>
#include <string>

namespace {

using sluice::testing::HandlerTest;

void expect(bool holds, const std::string& what) {
  if (!holds) {
    throw std::runtime_error(what);
  }
}

void run(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  expect(library != nullptr, "cannot be loaded");
  const void* const symbol = ::dlsym(library, SLUICE_PLUGIN_SYMBOL);
  expect(symbol != nullptr, "has no symbol " SLUICE_PLUGIN_SYMBOL);
  const auto& handler = sluice::testing::handler(*static_cast<const sluice_plugin*>(symbol), "foreign");
  HandlerTest broken(handler, {{"broken", true}});
  expect(!broken.created() && broken.errors().front().find("cannot be made") != std::string::npos, "throws when made");
  HandlerTest test(handler, {{"text", "t"}, {"list", std::vector<std::string>{"a", "second"}}});
  expect(test.created(), "is made");
  const auto done = test.handle({.body = "order", .attributes = {{"colour", "red"}}});
  expect(done.committed && done.effects.message_to("answers").body == "order second", "stages a message");
  expect(test.logged("colour=red") && test.logged("t from a thread"), "logs");
  expect(test.handle({.body = "throw", .attempt = 3}).reason == "cannot work on throw, attempt 3", "throws");
  expect(test.handle({.body = "throw int"}).status == SLUICE_FAULT, "throws what is no exception");
  expect(test.handle({.body = "reject"}).reason == "rejected: t", "rejects");
}

struct Many {
  static sluice::Task<int> one(int number) { co_return number; }
  static sluice::Task<void> nothing() { co_return; }
  sluice::Task<sluice::Outcome> handle(const sluice::Message&, sluice::AsyncContext& context) const {
    int sum = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      sum += co_await one(i % 2);
      co_await nothing();
    }
    co_await context.sleep(std::chrono::seconds(1));
    co_return sluice::discard(std::to_string(sum));
  }
};

void await_many() {
  HandlerTest many(sluice::testing::handler<Many>());
  expect(many.handle({}).reason == "500000", "awaits many tasks");
}

}  // namespace

int main(int count, char** words) {
  try {
    count > 1 ? run(words[1]) : await_many();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", count > 1 ? words[1] : "coroutines", error.what());
    return 1;
  }
}
