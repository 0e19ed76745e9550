// Counts what a message costs in memory that an asynchronous handler has begun with: all of it goes through this
// operator new.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/memory_queue.hpp"
#include "host/work/job.hpp"
#include "sluice/async.h"

namespace {
std::atomic<std::size_t> live{0};

/// With what the C library keeps of it.
std::size_t size_of(void* memory) { return ::malloc_usable_size(memory) + sizeof(std::size_t); }

void* allocate(std::size_t size) {
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  live += size_of(memory);
  return memory;
}
void release(void* memory) noexcept {
  if (memory != nullptr) {
    live -= size_of(memory);
    std::free(memory);
  }
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;

constexpr std::size_t kMessages = 10'000;

/// What the handler has begun with.
struct Begun {
  const sluice_async_host* host = nullptr;
  std::vector<sluice_token> tokens;  ///< has room for all
  std::atomic<std::size_t> count{0};
};
Begun begun;

const sluice_async kAsync{sizeof(sluice_async), 0,
                          [](void*, const sluice_message*, const sluice_async_context* context) {
                            begun.host = context->async;
                            begun.tokens.push_back(context->token);
                            ++begun.count;
                            begun.count.notify_all();
                          }};
const sluice_handler kHandler{
    sizeof(sluice_handler),
    0,
    "waits",
    nullptr,
    nullptr,
    0,
    [](const sluice_host*, const sluice_option_value* const*, std::size_t, void** instance,
       void (*)(void*, sluice_string), void*) -> std::int32_t {
      *instance = nullptr;
      return 0;
    },
    [](void*) {},
    [](void*, const sluice_message*, const sluice_context*) {},
    [](const char* id) -> const void* { return std::strcmp(id, SLUICE_ASYNC_1) == 0 ? &kAsync : nullptr; }};

TEST(AsyncMemory, AMessageAtWorkTakesLessThanOneAndAHalfKibibytes) {
  const SystemClock clock;
  SeededRandom random(1);
  observe::Log log(observe::LogLevel::off, observe::LogFormat::text);
  observe::Metrics metrics;
  JobSpec spec;
  spec.config.name = spec.config.queue = "waits";
  spec.config.handler = "waits";
  spec.config.concurrency = kMessages;
  spec.handler = &kHandler;
  spec.host = "test";
  begun.tokens.reserve(kMessages);
  auto made = Job::create(std::move(spec), std::make_unique<bench::MemoryQueue>(clock, kMessages, 100),
                          {clock, random, log, metrics.job("waits", "waits")});
  ASSERT_TRUE(made) << made.error().message();
  Job& job = **made;
  const std::size_t before = live;
  ASSERT_TRUE(job.start());
  for (std::size_t count = 0; (count = begun.count) < kMessages;) {
    begun.count.wait(count);
  }
  const std::size_t each = (live - before) / kMessages;
  EXPECT_LT(each, 1536U);
  RecordProperty("bytes", static_cast<int>(each));
  const sluice_outcome done{sizeof(sluice_outcome), SLUICE_DONE, -1, {}};
  for (const sluice_token token : begun.tokens) {
    ASSERT_EQ(begun.host->complete(begun.host, token, &done), SLUICE_ACCEPTED);
  }
  const JobActivity report = job.drain(Deadline::after(clock, 20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.done, kMessages);
}

}  // namespace
}  // namespace sluice::work
