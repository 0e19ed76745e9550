// Every plugin that we ship passes, with options made up where it needs some and nobody listening where it calls.
#include <filesystem>

#include "tests/validate/validated.hpp"

namespace sluice::test {
namespace {

using testing::IsEmpty;

struct Shipped {
  const char* file;
  const char* options;  ///< TOML
};

void PrintTo(const Shipped& shipped, std::ostream* out) { *out << shipped.file; }

class ShippedPlugin : public testing::TestWithParam<Shipped> {};

INSTANTIATE_TEST_SUITE_P(
    All, ShippedPlugin,
    testing::Values(Shipped{"greeter", ""}, Shipped{"transfer", ""}, Shipped{"log", ""}, Shipped{"verify-file", ""},
                    Shipped{"exec", "command = [\"/bin/cat\"]\n"},
                    Shipped{"webhook", "url = \"http://127.0.0.1:9/\"\n"},
                    Shipped{"nats", "servers = [\"nats://127.0.0.1:9\"]\nsubject = \"s\"\n"},
                    Shipped{"sns",
                            "topic = \"arn:aws:sns:eu-west-1:123456789012:t\"\nregion = \"eu-west-1\"\n"
                            "endpoint = \"http://127.0.0.1:9\"\naccess_key_id = \"x\"\nsecret_access_key = \"x\"\n"},
                    Shipped{"queue", "queue = \"next\"\n"}),
    [](const auto& parameter) {
      std::string name = parameter.param.file;
      std::erase(name, '-');
      return name;
    });

TEST_P(ShippedPlugin, Passes) {
  const HostFolder folder;
  folder.write("options.toml", GetParam().options);
  std::vector<std::string> more{"--strict"};
  if (*GetParam().options != '\0') {
    more.insert(more.end(), {"--options", folder.path() + "/options.toml"});
  }
  const Validated validated(SLUICE_PLUGIN_DIR "/" + std::string(GetParam().file) + ".so", more);
  EXPECT_EQ(validated.exit_code, 0) << validated.err;
  EXPECT_THAT(validated.findings(), IsEmpty());
  EXPECT_LT(validated.report.at("seconds").to_number<double>(), 20);
}

}  // namespace
}  // namespace sluice::test
