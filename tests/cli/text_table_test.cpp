#include <gtest/gtest.h>

#include "host/cli/views/output.hpp"
#include "host/operate/record_json.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

TEST(TextTable, AlignsColumnsAndEndsNoLineWithBlanks) {
  TextTable table({{.title = "ID"}, {.title = "COUNT", .right = true}, {.title = "ERROR"}}, {});
  table.add({"A-1", "7", "timeout"});
  table.add({"B", "12345678", ""});
  EXPECT_EQ(table.take(),
            "ID      COUNT  ERROR\n"
            "A-1         7  timeout\n"
            "B    12345678\n");
  EXPECT_EQ(table.take(), "");
}

TEST(TextTable, GoesOnInPagesUnderOneHeadline) {
  TextTable table({{.title = "ID"}, {.title = "N"}}, {});
  EXPECT_EQ(table.take(), "") << "no rows, no headline";
  table.add({"wide-one", "1"});
  EXPECT_EQ(table.take(), "ID        N\nwide-one  1\n");
  table.add({"x", "2"});
  EXPECT_EQ(table.take(), "x         2\n") << "columns stay where they were";
}

TEST(TextTable, MeasuresWhatATerminalShows) {
  EXPECT_EQ(display_width("plain"), 5U);
  EXPECT_EQ(display_width("\xc3\xa4\xc3\xb6"), 2U) << "two bytes each";
  EXPECT_EQ(display_width("\xe6\xb0\xb4"), 2U) << "a wide character";
  EXPECT_EQ(display_width("e\xcc\x81"), 1U) << "a combining accent";
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("a\xff\x62"), 3U) << "a broken byte takes a place";
  TextTable table({{.title = "ID"}, {.title = "N"}}, {});
  table.add({"\xe6\xb0\xb4", "1"});
  table.add({"abc", "2"});
  EXPECT_EQ(table.take(), "ID   N\n\xe6\xb0\xb4   1\nabc  2\n");
}

TEST(TextTable, IsWholeWhereThereIsNoTerminal) {
  TextTable table({operate::names("ID", 4), operate::figures("N", 1), operate::prose("ERROR", 4)}, {});
  const std::string error(300, 'e');
  table.add({"a-long-identifier", "1", error});
  EXPECT_EQ(table.take(), "ID                 N  ERROR\na-long-identifier  1  " + error + "\n");
}

TEST(TextTable, CutsNamesInTheMiddleAndProseAtTheEnd) {
  TextTable table({operate::names("HOST", 8), {.title = "STATE"}, operate::prose("ERROR", 8)}, {.columns = 30});
  table.add({"worker-7f9c8d5b4-x2kq1:4711", "ready", "connection refused"});
  EXPECT_EQ(table.take(),
            "HOST      STATE  ERROR\n"
            "work…711  ready  connection r…\n")
      << "prose says more than the middle of a name";
}

TEST(TextTable, CutsAtACharacter) {
  TextTable prose({{.least = 3, .prose = true}}, {.columns = 4});
  prose.add({"12345"});
  prose.add({"1234"});
  prose.add({"\xe6\xb0\xb4\xe6\xb0\xb4\xe6\xb0\xb4"});
  EXPECT_EQ(prose.take(), "123\xe2\x80\xa6\n1234\n\xe6\xb0\xb4\xe2\x80\xa6\n");
  TextTable name({{.least = 3}}, {.columns = 6});
  name.add({"\xe6\xb0\xb4\xe6\xb0\xb4\xe6\xb0\xb4\xe6\xb0\xb4"});
  EXPECT_EQ(name.take(), "\xe6\xb0\xb4\xe2\x80\xa6\xe6\xb0\xb4\n") << "no half of a wide one";
}

TEST(TextTable, LeavesOutWhatIsEmptyAndThenWhatCanBeSpared) {
  const std::vector<operate::Column> columns{{.title = "ID"},
                                             operate::names("HOST", 4, 2),
                                             operate::figures("AGE", 1),
                                             operate::names("NOTE", 4, 1),
                                             operate::prose("ERROR", 6)};
  TextTable wide(columns, {.columns = 40});
  wide.add({"A-1", "web", "3s", "-", "timeout"});
  EXPECT_EQ(wide.take(), "ID   HOST  AGE  NOTE  ERROR\nA-1  web    3s  -     timeout\n") << "it fits";
  TextTable empty(columns, {.columns = 24});
  empty.add({"A-1", "web", "3s", "-", "timeout"});
  EXPECT_EQ(empty.take(), "ID   HOST  AGE  ERROR\nA-1  web    3s  timeout\n");
  TextTable narrow(columns, {.columns = 20});
  narrow.add({"A-1", "web", "3s", "x", "timeout"});
  EXPECT_EQ(narrow.take(), "ID   NOTE  ERROR\nA-1  x     timeout\n");
  narrow.add({"A-2", "web", "3s", "x", "a longer text"});
  EXPECT_EQ(narrow.take(), "A-2  x     a longer…\n") << "the columns are those of the headline";
}

TEST(TextTable, LaterPagesFitUnderTheHeadlineOfTheFirst) {
  TextTable table({operate::names("ID", 4), operate::figures("AGE", 1), operate::prose("ERROR", 24)}, {.columns = 30});
  table.add({"A-1", "3s", ""});
  EXPECT_EQ(table.take(), "ID   AGE  ERROR\nA-1   3s\n");
  table.add({"A-2", "3s", "connection to 10.0.0.7 refused"});
  EXPECT_EQ(table.take(), "A-2   3s  connection to 10.0.…\n") << "no column can be spared any more";
}

TEST(Wrapped, BreaksAtSpacesAndGoesOnFurtherIn) {
  const std::string text = "  handler mail: sends one\n\n  short\n";
  EXPECT_EQ(wrapped(text, {}), text);
  EXPECT_EQ(wrapped(text, {.columns = 20}), "  handler mail:\n      sends one\n\n  short\n");
  EXPECT_EQ(wrapped("\x1b[31mFAIL\x1b[0m  it all\n", {.columns = 12}), "\x1b[31mFAIL\x1b[0m  it all\n")
      << "colours take no room";
}

TEST(TextTable, ShowsNothingThatSteersATerminal) {
  TextTable table({{.title = {}}}, {});
  table.add({"a\x1b[31m\nb"});
  EXPECT_EQ(table.take(), "a\\u001b[31m\\nb\n");
}

TEST(TextTable, AMessageShownWholeTurnsNoOrderRound) {
  queue::StoredMessage stored;
  stored.message.id = "A-1";
  stored.message.attributes = {{"file", "invoice\u202efdp.exe"}};
  stored.failure = {.error = "no \u2066such", .handler = "h\u200b", .host = {}};
  const std::vector<std::pair<std::string, std::string>> bodies{{"text/plain", "pay \u202e01 to me\nnow\u2028then"},
                                                                {"application/json", "{\"to\":\"\u202e01\"}"}};
  for (const auto& [type, body] : bodies) {
    stored.message.content_type = type;
    stored.message.body = body;
    const std::string text = message_text(stored, WallTime{}, false);
    for (const char* hidden : {"\u200b", "\u2028", "\u202e", "\u2066"}) {
      EXPECT_EQ(text.find(hidden), std::string::npos) << text;
    }
    EXPECT_NE(text.find("\\u202e01"), std::string::npos) << text;
  }
}

TEST(TextTable, ADeadLetterWasReceivedAsOftenAsItWasTried) {
  queue::StoredMessage stored;
  stored.message.id = "A-1";
  stored.failure = {.error = "no such customer", .handler = "h", .host = {}, .attempts = 2};
  const auto receives = [&stored] {
    return rows_of(std::vector{operate::ListedMessage{stored}}, WallTime{}, {.columns = {"RECEIVES"}});
  };
  EXPECT_EQ(receives(), "RECEIVES\n       0\n") << "redriven: it begins anew";
  stored.half = queue::Half::dlq;
  EXPECT_EQ(receives(), "RECEIVES\n       2\n");
  EXPECT_NE(message_text(stored, WallTime{}, false).find("receives      2\n"), std::string::npos);
  stored.message.attempt = 3;
  EXPECT_EQ(receives(), "RECEIVES\n       3\n") << "a job works on dead letters";
}

TEST(JsonOf, ADeadLetterWasReceivedAsOftenAsRowsSayAndAnExportHasItsOwnCount) {
  queue::StoredMessage dead;
  dead.half = queue::Half::dlq;
  dead.message.content_type = queue::kJson;
  dead.message.body = "1";
  dead.failure = {.error = "no", .handler = "bill", .host = "h1", .attempts = 2, .failed_at = {}};
  EXPECT_NE(json_of(dead, {}).find("\"receive_count\": 2,"), std::string::npos);
  EXPECT_NE(json_of(operate::ListedMessage{dead}, {}).find("\"receive_count\": 2,"), std::string::npos);
  std::string line;
  operate::append_record_line(line, dead);
  EXPECT_NE(line.find("\"receive_count\":0,"), std::string::npos) << line;
}

TEST(TextTable, ColoursCellsAndNotTheBlanksBetween) {
  TextTable table({{.title = "A"}, {.title = "B"}}, {.colours = true});
  table.add({{"x", Colour::red}, "y"});
  EXPECT_EQ(table.take(), "\x1b[2mA\x1b[0m  \x1b[2mB\x1b[0m\n\x1b[31mx\x1b[0m  y\n");
}

TEST(ShortDuration, KeepsOneUnit) {
  EXPECT_EQ(short_duration(-5s), "0s");
  EXPECT_EQ(short_duration(999ms), "0s");
  EXPECT_EQ(short_duration(60s), "60s") << "as the second after it";
  EXPECT_EQ(short_duration(119s), "119s");
  EXPECT_EQ(short_duration(1h), "60m");
  EXPECT_EQ(short_duration(150s), "2m");
  EXPECT_EQ(short_duration(26h), "26h");
  EXPECT_EQ(short_duration(72h), "3d");
}

}  // namespace
}  // namespace sluice::cli
