// Jobs of batch and asynchronous handlers with their threads.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "host/work/job.hpp"
#include "sluice/async.h"
#include "sluice/batch.h"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

/// What the handlers of one test have seen; one test at a time.
struct Books {
  Mutex mutex;
  Condition changed;
  std::vector<std::size_t> batches SLUICE_GUARDED_BY(mutex);
  std::vector<sluice_token> tokens SLUICE_GUARDED_BY(mutex);
  const sluice_async_host* async SLUICE_GUARDED_BY(mutex) = nullptr;
  int destroyed SLUICE_GUARDED_BY(mutex) = 0;

  bool await(const std::function<bool()>& condition) {
    const MutexLock lock(mutex);
    return changed.wait_until(mutex, SystemClock().steady_now() + kPatience, condition);
  }
};
Books* books = nullptr;

int32_t create(const sluice_host* host, const sluice_option_value* const*, size_t, void**,
               void (*)(void*, sluice_string), void*) {
  const MutexLock lock(books->mutex);
  books->async = static_cast<const sluice_async_host*>(host->extension(host, SLUICE_ASYNC_1));
  return 0;
}
void destroy(void*) {
  const MutexLock lock(books->mutex);
  ++books->destroyed;
  books->changed.notify_all();
}
void report_done(const sluice_context* context) {
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {}};
  context->report(context, &outcome);
}
sluice_answer complete(sluice_token token) {
  const sluice_async_host* host = nullptr;
  {
    const MutexLock lock(books->mutex);
    host = books->async;
  }
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {}};
  return host->complete(host, token, &outcome);
}

const sluice_batch kBatch{sizeof(sluice_batch), 0,
                          [](void*, const sluice_message* const*, const sluice_context* const* contexts, size_t count) {
                            for (size_t i = 0; i < count; ++i) {
                              report_done(contexts[i]);
                            }
                            const MutexLock lock(books->mutex);
                            books->batches.push_back(count);
                          }};
const sluice_async kAsync{sizeof(sluice_async), 0,
                          [](void*, const sluice_message*, const sluice_async_context* context) {
                            const MutexLock lock(books->mutex);
                            books->tokens.push_back(context->token);
                            books->changed.notify_all();
                          }};

template <const void* feature(const char*)>
const sluice_handler& table() {
  static const sluice_handler kTable{sizeof(sluice_handler),
                                     0,
                                     "kinds",
                                     nullptr,
                                     nullptr,
                                     0,
                                     &create,
                                     &destroy,
                                     [](void*, const sluice_message*, const sluice_context* c) { report_done(c); },
                                     feature};
  return kTable;
}
const void* batch_feature(const char* id) { return std::strcmp(id, SLUICE_BATCH_1) == 0 ? &kBatch : nullptr; }
const void* async_feature(const char* id) { return std::strcmp(id, SLUICE_ASYNC_1) == 0 ? &kAsync : nullptr; }

class JobKinds : public testing::Test {
 protected:
  JobKinds() { books = &books_; }
  ~JobKinds() override { books = nullptr; }

  Books books_;
};

TEST_F(JobKinds, ABatchHandlerWorksEverythingOff) {
  JobRig rig({}, [](JobSpec& spec) {
    spec.handler = &table<batch_feature>();
    spec.config.concurrency = 2;
    spec.config.max_batch = 30;
    spec.config.max_wait = 20ms;
  });
  rig.send_many(1000);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1000; }));
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
  const MutexLock lock(books_.mutex);
  EXPECT_LE(*std::max_element(books_.batches.begin(), books_.batches.end()), 30U);
  EXPECT_LT(books_.batches.size(), 100U) << "most of them were full";
}

TEST_F(JobKinds, ABatchDoesNotWaitForWhatAQueueInOrderHoldsBack) {
  JobRig rig({}, [](JobSpec& spec) {
    spec.handler = &table<batch_feature>();
    spec.config.concurrency = 1;
    spec.config.order = config::Order::queue;
    spec.config.max_wait = 30s;
  });
  rig.send_many(4);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 4; }));
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
  const MutexLock lock(books_.mutex);
  EXPECT_EQ(books_.batches, std::vector<std::size_t>(4, 1));
}

TEST_F(JobKinds, AnAsynchronousHandlerIsCompletedByManyThreads) {
  JobRig rig({}, [](JobSpec& spec) {
    spec.handler = &table<async_feature>();
    spec.config.concurrency = 200;
  });
  std::array<std::jthread, 4> threads;
  for (std::jthread& thread : threads) {
    thread = std::jthread([this](const std::stop_token& stop) {
      while (true) {
        sluice_token token = 0;
        {
          const MutexLock lock(books_.mutex);
          if (!books_.changed.wait(books_.mutex, stop,
                                   [this]() SLUICE_REQUIRES(books_.mutex) { return !books_.tokens.empty(); })) {
            return;
          }
          token = books_.tokens.back();
          books_.tokens.pop_back();
        }
        EXPECT_EQ(complete(token), SLUICE_ACCEPTED);
      }
    });
  }
  rig.send_many(5000);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 5000; }));
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
  EXPECT_TRUE(rig.job->at_rest());
  const MutexLock lock(books_.mutex);
  EXPECT_EQ(books_.destroyed, 1);
}

TEST_F(JobKinds, AnInstanceIsNotDestroyedBeforeItsLastMessageIsCompleted) {
  JobRig rig({}, [](JobSpec& spec) {
    spec.handler = &table<async_feature>();
    spec.config.concurrency = 10;
    spec.config.timeout = 1h;
  });
  rig.send({"kept", "ended"});
  rig.job->start();
  ASSERT_TRUE(books_.await([this]() SLUICE_REQUIRES(books_.mutex) { return books_.tokens.size() == 2; }));
  std::vector<sluice_token> tokens;
  {
    const MutexLock lock(books_.mutex);
    tokens = books_.tokens;
  }
  EXPECT_EQ(complete(tokens[1]), SLUICE_ACCEPTED);
  rig.job->hard_stop();
  const JobActivity report = rig.job->drain(rig.in(1h));
  EXPECT_EQ(report.ledger.stranded, 0U);
  EXPECT_EQ(report.handlers_running(), 1U);
  EXPECT_FALSE(rig.job->at_rest());
  {
    const MutexLock lock(books_.mutex);
    EXPECT_EQ(books_.destroyed, 0);
  }
  EXPECT_EQ(complete(tokens[0]), SLUICE_ACCEPTED);
  EXPECT_EQ(complete(tokens[0]), SLUICE_TWICE);
  EXPECT_TRUE(books_.await([this]() SLUICE_REQUIRES(books_.mutex) { return books_.destroyed == 1; }));
}

TEST_F(JobKinds, ManyMoreAreAtWorkThanThereAreThreads) {
  JobRig rig({}, [](JobSpec& spec) {
    spec.handler = &table<async_feature>();
    spec.config.concurrency = 5000;
    spec.config.timeout = 1h;
  });
  rig.send_many(5000);
  rig.job->start();
  ASSERT_TRUE(books_.await([this]() SLUICE_REQUIRES(books_.mutex) { return books_.tokens.size() == 5000; }));
  EXPECT_EQ(rig.job->activity().running.size(), 5000U);
  std::vector<sluice_token> tokens;
  {
    const MutexLock lock(books_.mutex);
    tokens = books_.tokens;
  }
  for (const sluice_token token : tokens) {
    complete(token);
  }
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 5000; }));
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
}

}  // namespace
}  // namespace sluice::work
