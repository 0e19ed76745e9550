#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "host/cli/console.hpp"
#include "host/cli/shell/shell.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::test {
namespace {

using cli::RememberedOptions;
using cli::Shell;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Words = std::vector<std::string>;

/// A shell on commands that only remember how they were called.
class Dialogue {
 public:
  explicit Dialogue(RememberedOptions options = {{"queue", "orders"}})
      : shell(queue_shell(std::move(options),
                          {.run =
                               [this](const Words& words, const RememberedOptions& remembered) {
                                 runs.push_back(whole(words, remembered));
                                 return exit_code;
                               },
                           .try_open =
                               [](const RememberedOptions& where) {
                                 return where.at("queue") == "ordres" ? cli::Exit::usage("nobody knows ordres")
                                                                      : cli::Exit::ok();
                               },
                           .queues =
                               [] {
                                 return Words{"orders", "invoices"};
                               },
                           .ids =
                               [this](const RememberedOptions& where) {
                                 ++listings;
                                 return where.at("queue") == "orders" ? ids : Words{};
                               }},
                          console)) {}

  Shell::Next type(const std::string& line) {
    runs.clear();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto next = shell->step(line);
    console.flush();
    out = testing::internal::GetCapturedStdout();
    notes = cli::lines_of(testing::internal::GetCapturedStderr());
    return next;
  }
  /// The words, and what holds beside them.
  static Words whole(Words words, const RememberedOptions& remembered) {
    if (const cli::Command* command = cli::find_command(cli::commands(), words)) {
      const auto line = cli::Arguments::of_line(*command, std::span(words).subspan(command->name_words()));
      for (const auto& [name, value] : line.unsaid(remembered)) {
        words.push_back("--" + name + "=" + value);
      }
    }
    return words;
  }
  /// The words that a line became; empty when it was not run.
  Words ran(const std::string& line) {
    EXPECT_EQ(type(line), Shell::Next::go_on) << line;
    return runs.empty() ? Words() : runs.back();
  }
  Words completed(const std::string& line) { return shell->complete(line).words; }

  int exit_code = 0;
  int listings = 0;
  Words ids{"A-101", "A-202", "it's"};  // of the queue orders
  std::vector<Words> runs;
  std::string out;
  Words notes;
  cli::Console console;
  std::unique_ptr<Shell> shell;
};

TEST(QueueShell, AddsTheQueueWhereACommandTakesOne) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.ran("ls --limit 3"), ElementsAre("ls", "--limit", "3", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("version"), ElementsAre("version"));
  EXPECT_THAT(dialogue.ran("ls --queue other"), ElementsAre("ls", "--queue", "other"));
  EXPECT_THAT(dialogue.ran("ls --queue=other"), ElementsAre("ls", "--queue=other"));
  EXPECT_THAT(dialogue.ran("ls --outbox mail"), ElementsAre("ls", "--outbox", "mail")) << "its rows are a queue";
  EXPECT_THAT(dialogue.ran("qstat"), ElementsAre("qstat", "--queue=orders"));
}

TEST(QueueShell, RemembersWhatItWasStartedWith) {
  Dialogue dialogue({{"config", "h.toml"}, {"output", "text"}, {"queue", "orders"}});
  EXPECT_THAT(dialogue.ran("ls"), ElementsAre("ls", "--config=h.toml", "--output=text", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("ls --output json"),
              ElementsAre("ls", "--output", "json", "--config=h.toml", "--queue=orders"));
}

// Of a few commands --output says where to write.
TEST(QueueShell, AddsHowToShowOnlyWhereThatIsMeant) {
  Dialogue dialogue({{"output", "text"}, {"queue", "orders"}});
  EXPECT_THAT(dialogue.ran("outbox convert w.yaml"), ElementsAre("outbox", "convert", "w.yaml"));
}

// A host file and a table without one exclude each other; what else says where a table is goes with both.
TEST(QueueShell, DropsWhatContradictsALine) {
  Dialogue with_file({{"config", "h.toml"}, {"queue", "orders"}});
  EXPECT_THAT(with_file.ran("ls --table t"), ElementsAre("ls", "--table", "t"));
  EXPECT_THAT(with_file.ran("ls --table-name t"), ElementsAre("ls", "--table-name", "t"));
  EXPECT_THAT(with_file.ran("ls --index i"), ElementsAre("ls", "--index", "i", "--config=h.toml", "--queue=orders"));
  Dialogue with_table({{"endpoint", "http://e"}, {"index", "i"}, {"queue", "t"}, {"table", "t"}});
  EXPECT_THAT(with_table.ran("ls"), ElementsAre("ls", "--endpoint=http://e", "--index=i", "--queue=t", "--table=t"));
  EXPECT_THAT(with_table.ran("ls --config x"), ElementsAre("ls", "--config", "x"));
  EXPECT_THAT(with_table.ran("ls --index-name j"),
              ElementsAre("ls", "--index-name", "j", "--endpoint=http://e", "--queue=t", "--table=t"));
}

// Options of a command say themselves what they contradict.
TEST(QueueShell, DropsWhatAnOptionOfALineExcludes) {
  Dialogue dialogue({{"output", "text"}, {"queue", "orders"}});
  EXPECT_THAT(dialogue.ran("resume --all"), ElementsAre("resume", "--all", "--output=text"));
  EXPECT_THAT(dialogue.ran("pause --job mailer"), ElementsAre("pause", "--job", "mailer", "--output=text"));
  EXPECT_THAT(dialogue.ran("ls --json"), ElementsAre("ls", "--json", "--queue=orders"));
  dialogue.type("id A-101");
  EXPECT_THAT(dialogue.ran("try shout.so --data hello"),
              ElementsAre("try", "shout.so", "--data", "hello", "--output=text", "--queue=orders"));
}

TEST(QueueShell, SelectsAMessageThatIsThere) {
  Dialogue dialogue;
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders> ");
  EXPECT_THAT(dialogue.ran("id A-101"), ElementsAre("get", "--id=A-101", "--queue=orders"));
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
  EXPECT_THAT(dialogue.ran("get"), ElementsAre("get", "--id=A-101", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("fail --id B"), ElementsAre("fail", "--id", "B", "--queue=orders"));
  dialogue.exit_code = 1;
  dialogue.type("id nobody");
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
  EXPECT_THAT(dialogue.ran("id"), IsEmpty());
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders> ");
  dialogue.type("id two words");
  EXPECT_THAT(dialogue.notes, ElementsAre(HasSubstr("id takes one id")));
}

TEST(QueueShell, DoesNotGiveANewMessageTheSelectedId) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  EXPECT_THAT(dialogue.ran("send --data 1"), ElementsAre("send", "--data", "1", "--queue=orders"));
}

TEST(QueueShell, LeavesAnIdThatLooksLikeAnOptionAlone) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  EXPECT_THAT(dialogue.ran("delete -- --odd"), ElementsAre("delete", "--", "--odd", "--queue=orders"));
}

TEST(QueueShell, PurgesTheQueueWhateverIsSelected) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  EXPECT_THAT(dialogue.ran("purge"), ElementsAre("purge", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("purge A-202"), ElementsAre("purge", "A-202", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("cancel-running A-202"), ElementsAre("cancel-running", "A-202", "--queue=orders"))
      << "the plain word is the id, of every command that takes one";
}

TEST(QueueShell, DoesNotTakeTheSelectedIdElsewhere) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  for (const std::string place : {"--queue late", "--outbox mail", "--config other.toml", "--table t2"}) {
    EXPECT_THAT(dialogue.ran("delete " + place), Not(Contains("--id=A-101"))) << place;
    EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
  }
}

TEST(QueueShell, KeepsASelectionThatWasNotRemoved) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  for (const std::string line : {"delete --help", "delete --dry-run", "delete A-102", "delete A-101 --queue late"}) {
    dialogue.type(line);
    EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ") << line;
  }
  dialogue.type("delete --id A-100 --id A-101");
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders> ");
}

TEST(QueueShell, DropsASelectionThatIsGone) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  dialogue.exit_code = 1;
  dialogue.type("delete");
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
  dialogue.exit_code = 0;
  dialogue.type("invalid");
  dialogue.type("delete --where 'receive_count > 3'");
  EXPECT_THAT(dialogue.runs, ElementsAre(Not(Contains("--id=A-101"))));
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
  EXPECT_THAT(dialogue.ran("delete"), ElementsAre("delete", "--id=A-101", "--queue=orders"));
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders> ");
}

TEST(QueueShell, GoesToAnotherQueue) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  dialogue.type("use invoices");
  EXPECT_EQ(dialogue.shell->prompt(), "sluice invoices> ");
  EXPECT_THAT(dialogue.ran("stats"), ElementsAre("stats", "--queue=invoices"));
  dialogue.type("use");
  EXPECT_THAT(dialogue.notes, ElementsAre(HasSubstr("use QUEUE")));
  Dialogue table({{"queue", "t"}, {"table", "t"}});
  table.type("use u");
  EXPECT_THAT(table.ran("stats"), ElementsAre("stats", "--queue=u", "--table=u"));
}

TEST(QueueShell, LeavesTheNameOfWhatIsSteeredAlone) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.ran("pause mailer"), ElementsAre("pause", "mailer"));
  EXPECT_THAT(dialogue.ran("pause"), ElementsAre("pause", "--queue=orders"));
}

TEST(QueueShell, StaysWhereItIsWhenNobodyKnowsTheQueue) {
  Dialogue dialogue;
  dialogue.type("id A-101");
  dialogue.type("use ordres");
  EXPECT_THAT(dialogue.notes, ElementsAre("use: nobody knows ordres"));
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders A-101> ");
}

TEST(QueueShell, KeepsTheCodeOfTheLastCommandThatFailed) {
  Dialogue dialogue;
  dialogue.type("stats");
  EXPECT_EQ(dialogue.shell->last_failure(), 0);
  dialogue.type("frobnicate");
  EXPECT_EQ(dialogue.shell->last_failure(), 64);
  dialogue.exit_code = 1;
  dialogue.type("get A-9");
  dialogue.exit_code = 0;
  dialogue.type("stats");
  EXPECT_EQ(dialogue.shell->last_failure(), 1);
}

TEST(QueueShell, ShowsNothingThatSteersATerminal) {
  Dialogue dialogue(RememberedOptions{{"queue", "a\x1b[2Jb"}});
  EXPECT_THAT(dialogue.shell->prompt(), Not(HasSubstr("\x1b")));
  dialogue.type("id " + std::string(300, 'x'));
  EXPECT_LT(dialogue.shell->prompt().size(), 100U);
}

TEST(QueueShell, EndsAndGoesOn) {
  Dialogue dialogue;
  EXPECT_EQ(dialogue.type("quit"), Shell::Next::end);
  EXPECT_EQ(dialogue.type("exit"), Shell::Next::end);
  EXPECT_EQ(dialogue.type("q"), Shell::Next::end);
  for (const std::string line : {"", "   ", "# comment"}) {
    EXPECT_EQ(dialogue.type(line), Shell::Next::go_on);
    EXPECT_THAT(dialogue.runs, IsEmpty());
    EXPECT_THAT(dialogue.notes, IsEmpty());
  }
}

TEST(QueueShell, SaysWhatItDoesNotKnow) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.ran("stast"), IsEmpty());
  EXPECT_THAT(dialogue.notes, ElementsAre("unknown command \"stast\"; did you mean stats?"));
  dialogue.type("zzzzzz");
  EXPECT_THAT(dialogue.notes, ElementsAre("unknown command \"zzzzzz\"; `help` lists them"));
  dialogue.type("ls 'x");
  EXPECT_THAT(dialogue.notes, ElementsAre(HasSubstr("column 4")));
  for (const std::string line : {"run", "dev --plugin shout.so", "shell"}) {
    EXPECT_THAT(dialogue.ran(line), IsEmpty());
    EXPECT_THAT(dialogue.notes, ElementsAre(HasSubstr("end this shell first")));
  }
}

TEST(QueueShell, Helps) {
  Dialogue dialogue;
  dialogue.type("help");
  EXPECT_THAT(dialogue.out, HasSubstr("use QUEUE"));
  EXPECT_THAT(dialogue.out, HasSubstr("  ls "));
  EXPECT_THAT(dialogue.out, Not(HasSubstr("  shell ")));
  EXPECT_THAT(dialogue.ran("help ls"), ElementsAre("help", "ls"));
  EXPECT_THAT(dialogue.ran("? ls"), ElementsAre("help", "ls"));
  EXPECT_THAT(dialogue.ran("ls --help"), ElementsAre("ls", "--help", "--queue=orders"));
  EXPECT_THAT(dialogue.ran("table"), ElementsAre("table"));
}

TEST(QueueShell, CompletesCommandsAndOptions) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.completed("sta"), ElementsAre("stats"));
  EXPECT_THAT(dialogue.completed(""), Contains("use"));
  EXPECT_THAT(dialogue.completed(""), Not(Contains("run")));
  EXPECT_THAT(dialogue.completed("help sta"), ElementsAre("stats"));
  EXPECT_THAT(dialogue.completed("table cr"), ElementsAre("create"));
  EXPECT_THAT(dialogue.completed("ls --lim"), ElementsAre("--limit"));
  EXPECT_THAT(dialogue.completed("ls --limit 3 --lim"), IsEmpty());
  EXPECT_THAT(dialogue.completed("ls --output "), ElementsAre("json", "text"));
  EXPECT_THAT(dialogue.completed("ls --output=j"), ElementsAre("json"));
  EXPECT_EQ(dialogue.shell->complete("ls --output=j").replaced, 1U);
  EXPECT_THAT(dialogue.completed("unknown --"), IsEmpty());
}

/// An id may hold anything, and completion shows it on a terminal.
TEST(QueueShell, OffersNoIdThatSteersTheTerminalOrBreaksTheLine) {
  Dialogue dialogue;
  dialogue.ids = {"A-1", "A-2\x1b[31m", "A-3\nquit", "A-4\xff", "A-5\xc2\x9b", "A b"};
  EXPECT_THAT(dialogue.completed("id "), ElementsAre("'A b'", "A-1"));
}

TEST(QueueShell, CutsWhatIsLong) {
  Dialogue dialogue;
  dialogue.type(std::string(5000, 'x'));
  EXPECT_THAT(dialogue.notes, ElementsAre(testing::SizeIs(testing::Lt(120U))));
  std::string id;
  while (id.size() < 60) {
    id += "日";
  }
  dialogue.type("id " + id);
  EXPECT_EQ(dialogue.shell->prompt(), "sluice orders " + id.substr(0, 36) + "...> ") << "between two characters";
}

TEST(QueueShell, CompletesQueuesAndIds) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.completed("use "), ElementsAre("invoices", "orders"));
  EXPECT_THAT(dialogue.completed("use orders "), IsEmpty());
  EXPECT_THAT(dialogue.completed("id A"), ElementsAre("A-101", "A-202"));
  EXPECT_THAT(dialogue.completed("get --id A-2"), ElementsAre("A-202"));
  EXPECT_THAT(dialogue.completed("get --id=A-2"), ElementsAre("A-202"));
  EXPECT_THAT(dialogue.completed("get --output=json A-2"), ElementsAre("A-202")) << "after an option with its value";
  EXPECT_THAT(dialogue.completed("id it"), ElementsAre("'it'\\''s'"));
  EXPECT_EQ(dialogue.listings, 1) << "the store is asked once between two commands";
  dialogue.type("get --id Z-900");
  EXPECT_THAT(dialogue.completed("id Z"), ElementsAre("Z-900"));
  dialogue.type("fail --id=Z-901");
  EXPECT_THAT(dialogue.completed("id Z"), ElementsAre("Z-900", "Z-901"));
  EXPECT_EQ(dialogue.listings, 3);
}

TEST(QueueShell, LeavesQuotedWordsAlone) {
  Dialogue dialogue;
  EXPECT_THAT(dialogue.completed("id 'A"), IsEmpty());
  EXPECT_THAT(dialogue.completed("ls --where 'a "), IsEmpty());
}

TEST(QueueShell, KeepsContentOutOfTheHistory) {
  const Dialogue dialogue;
  for (const std::string line : {"ls --dlq", "id A-101", "edit --id A-101", "purge --older-than 1h"}) {
    EXPECT_TRUE(dialogue.shell->may_be_kept(line)) << line;
  }
  for (const std::string line :
       {"send --data secret", "send --data=secret", "send --text secret", "send --attr k=secret",
        "edit --set data.x=secret", "ls --where 'data.mail = \"secret\"'", "ls --error-like secret", " ls", "ls 'open",
        ""}) {
    EXPECT_FALSE(dialogue.shell->may_be_kept(line)) << line;
  }
}

}  // namespace
}  // namespace sluice::test
