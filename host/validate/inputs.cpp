#include "host/validate/inputs.hpp"

#include <algorithm>
#include <limits>

#include "base/text/lower_case.hpp"

namespace sluice::validate {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kLargestBody = 400 * kKiB;
constexpr std::size_t kManyAttributes = 1000;
constexpr std::size_t kDeep = 100'000;
/// A maximum that a job has, so that the last attempt can be told from others.
constexpr std::uint32_t kFarAttempt = 1'000'000;

std::string all_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i & 0xFFU);
  }
  return bytes;
}

queue::Message plain(std::string body) {
  queue::Message message;
  message.id = "validate-1";
  message.body = std::move(body);
  message.attempt = 1;
  message.sent_at = SystemClock().wall_now();
  return message;
}

queue::Message json(std::string body) {
  queue::Message message = plain(std::move(body));
  message.content_type = queue::kJson;
  return message;
}

void add_bodies(std::vector<OddMessage>& all) {
  all.push_back({"a plain message", plain("hello")});
  all.push_back({"an empty body", plain("")});
  all.push_back({"a body of all byte values", plain(all_bytes(256))});
  all.push_back({"a body that is not UTF-8", plain("caf\xe9 \xc3( \xf0\x9f \xed\xa0\x80")});
  all.push_back({"a body of zero bytes", plain(std::string(kKiB, '\0'))});
  all.push_back({"a body of 400 KB in one line", plain(std::string(kLargestBody, 'x'))});
  all.push_back({"a binary body of 400 KB", plain(all_bytes(kLargestBody))});
  all.push_back({"a body of format directives", plain("%s%s%n%x%99999999d {0} ${HOME} $(id) `id` ../../etc/passwd")});
  all.push_back({"a JSON object", json(R"({"id": 1, "name": "a"})")});
  all.push_back({"JSON that is cut off", json(R"({"id": 1, "name": "a)")});
  all.push_back({"JSON of 100,000 levels", json(std::string(kDeep, '['))});
  all.push_back({"JSON that is no object", json("null")});
  all.push_back({"JSON of other types",
                 json(R"({"id": {"id": []}, "from": 1e999, "to": null, "amount": -99999999999999999999})")});
}

void add_attributes(std::vector<OddMessage>& all) {
  queue::Message many = plain("hello");
  for (std::size_t i = 0; i < kManyAttributes; ++i) {
    many.attributes.emplace("attribute-" + std::to_string(i), std::string(100, 'v'));
  }
  all.push_back({"1,000 attributes", std::move(many)});
  queue::Message odd = plain("hello");
  odd.attributes = {{"", "no name"},
                    {"empty", ""},
                    {"bytes", all_bytes(256)},
                    {"two\r\nlines: x", "two\r\nlines: x"},
                    {"long", std::string(64 * kKiB, 'v')},
                    {std::string(4 * kKiB, 'n'), "long name"}};
  all.push_back({"attributes of odd names and values", std::move(odd)});
}

void add_envelopes(std::vector<OddMessage>& all) {
  queue::Message named = plain("hello");
  named.id = std::string(kKiB, 'i') + "/../\n\xff";
  named.group = std::string(kKiB, 'g') + "\n";
  all.push_back({"a long id and group with odd characters", std::move(named)});
  for (const char* type : {"", "image/png", "text/plain; charset=\"\r\n x", "\xff"}) {
    queue::Message typed = plain("hello");
    typed.content_type = type;
    all.push_back({"the content type \"" + std::string(type) + "\"", std::move(typed)});
  }
  queue::Message late = plain("hello");
  late.attempt = kFarAttempt;
  late.sent_at = WallTime{};
  all.push_back({"a message of 1970 at its millionth attempt", std::move(late)});
}

std::string random_text(Random& random, std::size_t size) {
  std::string text(random.below(size + 1), '\0');
  std::generate(text.begin(), text.end(), [&random] { return static_cast<char>(random.next()); });
  return text;
}

std::vector<OddValue> odd_texts() {
  std::string control;
  for (char byte = 1; byte < ' '; ++byte) {
    control += byte;
  }
  return {{"empty text", std::string()},
          {"1 MiB of text", std::string(kKiB * kKiB, 'x')},
          {"control characters", control + "\x7f"},
          {"text of other scripts", std::string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xe2\x80\xae")},
          {"format directives", std::string("%s%n%99999999d {} ${HOME} ../../..")}};
}

bool mentions(const sluice_option& option, std::initializer_list<std::string_view> words) {
  const std::string text = lower_case(option.name);
  return std::any_of(words.begin(), words.end(), [&text](auto word) { return text.find(word) != std::string::npos; });
}

}  // namespace

std::vector<OddMessage> odd_messages() {
  std::vector<OddMessage> all;
  add_bodies(all);
  add_attributes(all);
  add_envelopes(all);
  return all;
}

OddMessage random_message(Random& random, std::size_t number) {
  constexpr std::size_t kLargest = 64 * kKiB;
  constexpr std::size_t kMostAttributes = 16;
  constexpr std::size_t kTypes = 4;
  // Small bodies are more often near a limit of what is parsed than large ones.
  OddMessage made{"random message " + std::to_string(number), plain(random_text(random, kLargest >> random.below(16)))};
  const std::string_view types[kTypes] = {queue::kTextPlain, queue::kJson, queue::kOctetStream, "x/y"};
  made.message.content_type = types[random.below(kTypes)];
  made.message.attempt = static_cast<std::uint32_t>(random.below(100) + 1);
  for (std::size_t i = random.below(kMostAttributes); i > 0; --i) {
    made.message.attributes.emplace(random_text(random, 32), random_text(random, 256));
  }
  return made;
}

std::vector<OddValue> odd_values(sluice_option_type type) {
  using Integers = std::numeric_limits<std::int64_t>;
  using Numbers = std::numeric_limits<double>;
  const std::string large(kKiB * kKiB, 'x');
  switch (type) {
    case SLUICE_OPTION_STRING:
      return odd_texts();
    case SLUICE_OPTION_INTEGER:
      return {{"the least integer", Integers::min()},
              {"-1", std::int64_t{-1}},
              {"0", std::int64_t{0}},
              {"the largest integer", Integers::max()}};
    case SLUICE_OPTION_NUMBER:
      return {{"the lowest number", Numbers::lowest()},
              {"-0.0", -0.0},
              {"the least above zero", Numbers::denorm_min()},
              {"the largest number", Numbers::max()}};
    case SLUICE_OPTION_BOOLEAN:
      return {{"false", false}, {"true", true}};
    case SLUICE_OPTION_DURATION:
      return {
          {"no time", std::string("0s")}, {"a nanosecond", std::string("1ns")}, {"290 years", std::string("105850d")}};
    case SLUICE_OPTION_LIST:
      return {{"an empty list", std::vector<std::string>()},
              {"a list of an empty text", std::vector<std::string>(1)},
              {"a list of 10,000 texts", std::vector<std::string>(10'000, "x")},
              {"a list of 1 MiB in one text", std::vector<std::string>{large}}};
    default: {
      std::map<std::string, std::string> many{{"", ""}, {"two\r\nlines: x", "two\r\nlines: x"}};
      for (int i = 0; i < 1000; ++i) {
        many.emplace("name-" + std::to_string(i), "value");
      }
      return {{"an empty table", std::map<std::string, std::string>()},
              {"a table of 1,000 odd entries", many},
              {"a table of 1 MiB in one value", std::map<std::string, std::string>{{"name", large}}}};
    }
  }
}

config::OptionValue made_up_value(const sluice_option& option) {
  // Nothing listens on port 9, and the process that tries this has a folder of its own.
  switch (option.type) {
    case SLUICE_OPTION_INTEGER:
      return std::int64_t{1};
    case SLUICE_OPTION_NUMBER:
      return 1.0;
    case SLUICE_OPTION_BOOLEAN:
      return false;
    case SLUICE_OPTION_DURATION:
      return std::string("1s");
    case SLUICE_OPTION_LIST:
      return std::vector<std::string>{mentions(option, {"command", "program"}) ? "true" : "text"};
    case SLUICE_OPTION_MAP:
      return std::map<std::string, std::string>{{"name", "text"}};
    default:
      break;
  }
  if (mentions(option, {"url", "uri", "endpoint"})) {
    return std::string("http://127.0.0.1:9/");
  }
  if (mentions(option, {"address", "server", "broker", "host"})) {
    return std::string("127.0.0.1:9");
  }
  if (mentions(option, {"path", "file", "log", "dir", "folder", "root"})) {
    return std::string("./made-up");
  }
  return std::string("text");
}

}  // namespace sluice::validate
