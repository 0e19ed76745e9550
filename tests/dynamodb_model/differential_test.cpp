// The same requests to the model and to the emulator, and the same answers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/dynamodb_model/known_differences.hpp"
#include "tests/dynamodb_model/random_requests.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kSeeds = 6;
constexpr int kRequestsOfASeed = 700;

class ModelBesideEmulator : public testing::Test {
 protected:
  static void SetUpTestSuite() { emulator = Emulator::start().release(); }
  static void TearDownTestSuite() {
    delete emulator;
    emulator = nullptr;
  }
  void SetUp() override {
    if (emulator == nullptr) {
      GTEST_SKIP() << Emulator::absence();
    }
  }
  static inline Emulator* emulator = nullptr;
};

TEST_F(ModelBesideEmulator, AnswersTheSameRequestsInTheSameWay) {
  std::map<std::string, int> met;
  const char* named = std::getenv("SLUICE_MODEL_SEED");
  const std::uint64_t from = named == nullptr ? 1 : std::strtoull(named, nullptr, 10);
  const std::uint64_t to = named == nullptr ? kSeeds : from;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    const auto fresh = Emulator::start();
    EmulatorBackend real(*fresh);
    ModelBackend model(seed);
    for (const Question& table : RandomRequests::tables()) {
      ASSERT_EQ(model.ask(table).error, "");
      ASSERT_EQ(real.ask(table).error, "");
    }
    RandomRequests requests(seed);
    for (int i = 0; i < kRequestsOfASeed; ++i) {
      const Question question = requests.next();
      const Reaction ours = model.ask(question);
      const Reaction theirs = real.ask(question);
      if (same(question, ours, theirs)) {
        continue;
      }
      const auto& known = known_differences();
      const auto found = std::find_if(known.begin(), known.end(), [&](const KnownDifference& difference) {
        return difference.matches && difference.matches(question, ours, theirs);
      });
      if (found != known.end()) {
        ++met[found->name];
        continue;
      }
      ADD_FAILURE() << "seed " << seed << ", request " << i << ": " << question.operation << " "
                    << text_of(question.body) << "\n  model:    " << ours.status << " " << ours.error << " "
                    << ours.message << " " << text_of(ours.body) << "\n  emulator: " << theirs.status << " "
                    << theirs.error << " " << theirs.message << " " << text_of(theirs.body);
    }
  }
  for (const auto& [name, count] : met) {
    RecordProperty(name, count);
  }
}

// The list is true: nothing stands on it that the emulator does as DynamoDB does.
TEST_F(ModelBesideEmulator, DiffersWhereTheListSaysSo) {
  for (const KnownDifference& difference : known_differences()) {
    SCOPED_TRACE(difference.name + ": " + difference.reason);
    const auto fresh = Emulator::start();
    EmulatorBackend real(*fresh);
    ModelBackend model(1);
    for (const Question& table : RandomRequests::tables()) {
      model.ask(table);
      real.ask(table);
    }
    bool differs = false;
    for (const Question& question : difference.script) {
      const Reaction ours = model.ask(question);
      const Reaction theirs = real.ask(question);
      differs = !same(question, ours, theirs);
      if (differs && difference.matches) {
        EXPECT_TRUE(difference.matches(question, ours, theirs)) << text_of(ours.body) << "\n" << text_of(theirs.body);
      }
    }
    EXPECT_TRUE(differs) << "no longer seen; take it off the list";
  }
}

}  // namespace
}  // namespace sluice::test::model
