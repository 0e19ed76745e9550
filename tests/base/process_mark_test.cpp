#include "base/process_mark.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace sluice {
namespace {

TEST(ProcessMark, TellsWhoLivesFromWhoHasEnded) {
  const std::string own = process_mark(::getpid());
  ASSERT_NE(own, "");
  EXPECT_EQ(life_of(::getpid(), own), ProcessLife::alive);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string mark = process_mark(child);
  EXPECT_EQ(life_of(child, mark), ProcessLife::alive);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(life_of(child, mark), ProcessLife::gone) << "its parent has not taken note yet";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(life_of(child, mark), ProcessLife::gone);
}

TEST(ProcessMark, AnotherProcessOfTheSameIdIsNotTheOneThatIsMeant) {
  EXPECT_EQ(life_of(::getpid(), process_mark(::getpid()) + "0"), ProcessLife::gone) << "it began at another time";
}

TEST(ProcessMark, OfOtherMachinesNothingIsKnown) {
  EXPECT_EQ(life_of(1 << 30, ""), ProcessLife::unknown);
  EXPECT_EQ(life_of(::getpid(), "00000000-1-1"), ProcessLife::unknown);
  EXPECT_EQ(process_mark(1 << 30), "");
}

}  // namespace
}  // namespace sluice
