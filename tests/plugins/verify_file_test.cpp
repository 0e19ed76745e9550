#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

// Of the three bytes "abc".
constexpr const char* kMd5 = "900150983cd24fb0d6963f7d28e17f72";
constexpr const char* kSha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class VerifyFileTest : public ::testing::Test {
 protected:
  VerifyFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-verify-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary folder");
    }
    folder_ = name;
    std::ofstream(folder_ / "abc") << "abc";
  }
  ~VerifyFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static Result verify(const std::string& body, const OptionMap& options = {}) {
    HandlerTest test(handler_of("verify-file"), options);
    EXPECT_TRUE(test.created()) << test.errors().front();
    return test.handle({.body = body, .content_type = "application/json"});
  }
  static Result verify_path(const std::string& path, const OptionMap& options = {}) {
    return verify(R"({"path": ")" + path + R"(", "md5": ")" + kMd5 + "\"}", options);
  }

  std::filesystem::path folder_;
};

TEST_F(VerifyFileTest, IsDoneWhenTheHashesMatch) {
  const std::string start = R"({"path": ")" + path("abc") + "\", ";
  EXPECT_EQ(verify(start + R"("md5": ")" + kMd5 + "\"}").status, SLUICE_DONE);
  EXPECT_EQ(verify(start + R"("sha256": ")" + kSha256 + "\"}").status, SLUICE_DONE);
  EXPECT_EQ(verify(start + R"("md5": ")" + kMd5 + R"(", "sha256": ")" + kSha256 + "\"}").status, SLUICE_DONE);
  EXPECT_EQ(verify(start + R"("md5": null, "size": 3, "sha256": ")" + kSha256 + "\"}").status, SLUICE_DONE);
  EXPECT_EQ(verify(start + R"("md5": "900150983CD24FB0D6963F7D28E17F72"})").status, SLUICE_DONE);
}

TEST_F(VerifyFileTest, HashesAnEmptyAndALargeFile) {
  std::ofstream(folder_ / "empty") << "";
  EXPECT_EQ(verify(R"({"path": ")" + path("empty") + R"(", "md5": "d41d8cd98f00b204e9800998ecf8427e"})").status,
            SLUICE_DONE);
  std::ofstream(folder_ / "million") << std::string(1'000'000, 'a');
  EXPECT_EQ(verify(R"({"path": ")" + path("million") +
                   R"(", "sha256": "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"})")
                .status,
            SLUICE_DONE);
}

TEST_F(VerifyFileTest, RejectsADifferenceWithBothHashes) {
  const std::string wrong(32, '0');
  Result result = verify(R"({"path": ")" + path("abc") + R"(", "md5": ")" + wrong + "\"}");
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_EQ(result.reason, path("abc") + ": md5 is " + kMd5 + ", expected " + wrong);
  result = verify(R"({"path": ")" + path("abc") + R"(", "md5": ")" + kMd5 + R"(", "sha256": ")" + std::string(64, '0') +
                  "\"}");
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_EQ(result.reason.find("md5"), std::string::npos);
  EXPECT_NE(result.reason.find(kSha256), std::string::npos);
}

TEST_F(VerifyFileTest, RejectsWhatIsNoReadableFile) {
  EXPECT_EQ(verify_path(path("none")).reason, path("none") + " is missing");
  EXPECT_EQ(verify_path(path("abc/def")).reason, path("abc/def") + " is missing");
  EXPECT_EQ(verify_path(folder_.string()).reason, folder_.string() + " is a folder");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(verify_path(path("fifo")).reason, path("fifo") + " is not a regular file");
  EXPECT_EQ(verify_path("/dev/zero").reason, "/dev/zero is not a regular file");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(verify_path(path("loop")).status, SLUICE_REJECT);
  EXPECT_EQ(verify_path("/" + std::string(5000, 'x')).status, SLUICE_REJECT);
}

TEST_F(VerifyFileTest, RejectsWhatMayNotBeRead) {
  ASSERT_EQ(::chmod(path("abc").c_str(), 0), 0);
  // Root may read every file, so root becomes somebody else for a moment.
  const uid_t self = ::geteuid();
  HandlerTest test(handler_of("verify-file"));
  ASSERT_TRUE(self != 0 || ::seteuid(65534) == 0);
  const Result result = test.handle({.body = R"({"path": ")" + path("abc") + R"(", "md5": ")" + kMd5 + "\"}"});
  ASSERT_TRUE(self != 0 || ::seteuid(0) == 0);
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_NE(result.reason.find("Permission denied"), std::string::npos) << result.reason;
}

TEST_F(VerifyFileTest, RetriesAnErrorOfTheMoment) {
  // Reading one's own memory at address 0 is an input/output error.
  const Result result = verify_path("/proc/self/mem");
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("cannot be read"), std::string::npos) << result.reason;
}

TEST_F(VerifyFileTest, NamesWhatIsWrongWithABody) {
  const auto reason = [](const std::string& body) {
    const Result result = verify(body);
    EXPECT_EQ(result.status, SLUICE_REJECT) << body;
    return result.reason;
  };
  const auto says = [&](const std::string& body, const std::string& phrase) {
    EXPECT_NE(reason(body).find(phrase), std::string::npos) << body << " -> " << reason(body);
  };
  says("", "not JSON");
  says("path", "not JSON: parse error at line 1");
  says(R"({"path": "/a")", "not JSON");
  says(std::string("\xff\xfe\0", 3), "not JSON");
  says("[]", "an object");
  says("null", "an object");
  says("\"/a\"", "an object");
  says("{}", "no \"path\"");
  says(R"({"path": ""})", "no \"path\"");
  says(R"({"path": 5})", "\"path\" is number, not a string");
  says(R"({"path": "/a\u0000b", "md5": "900150983cd24fb0d6963f7d28e17f72"})", "zero byte");
  says(R"({"path": "/a"})", "neither \"md5\" nor \"sha256\"");
  says(R"({"path": "/a", "sha265": "x"})", "neither");
  says(R"({"path": "/a", "md5": "900150983cd24fb0d6963f7d28e17f7"})", "not a hash of 32");
  says(R"({"path": "/a", "md5": "900150983cd24fb0d6963f7d28e17fxx"})", "not a hash of 32");
  says(R"({"path": "/a", "sha256": "900150983cd24fb0d6963f7d28e17f72"})", "not a hash of 64");
  says(R"({"path": "/a", "md5": ["x"]})", "\"md5\" is array");
  says(R"({"path": "a", "md5": "900150983cd24fb0d6963f7d28e17f72"})", "relative");
  says(std::string(50'000, '['), "not JSON");
  says(std::string(400'000, ' '), "larger than");
}

TEST_F(VerifyFileTest, HoldsPathsWithinTheRoot) {
  const OptionMap within{{"root", folder_.string()}};
  std::filesystem::create_directory(folder_ / "sub");
  std::filesystem::create_symlink("/abc", folder_ / "sub/absolute");
  std::filesystem::create_symlink("../../../../etc/passwd", folder_ / "sub/out");
  for (const char* inside : {"abc", "/abc", "./abc", "sub/../abc", "../../abc", "sub/absolute"}) {
    EXPECT_EQ(verify_path(inside, within).status, SLUICE_DONE) << inside << ": " << verify_path(inside, within).reason;
  }
  for (const char* outside : {"/etc/passwd", "../../../../../../etc/passwd", "sub/out"}) {
    EXPECT_EQ(verify_path(outside, within).reason, std::string(outside) + " is missing");
  }
  EXPECT_EQ(verify_path("etc/hostname", {{"root", "/"}}).status, verify_path("/etc/hostname").status);
}

TEST_F(VerifyFileTest, ChecksTheRoot) {
  EXPECT_NE(creation_error("verify-file", {{"root", path("none")}}).find("must be a folder"), std::string::npos);
  EXPECT_NE(creation_error("verify-file", {{"root", path("abc")}}), "");
  EXPECT_NE(creation_error("verify-file", {{"root", ""}}), "");
}

TEST_F(VerifyFileTest, StopsInTheMiddleOfAFile) {
  std::filesystem::resize_file(folder_ / "abc", 1'000'000'000'000);  // Sparse: nobody could hash it in time.
  const TestMessage message{.body = R"({"path": ")" + path("abc") + R"(", "md5": ")" + kMd5 + "\"}"};
  LiveHost host("verify-file");
  Stop stop;
  stop.after_questions = 5;
  EXPECT_EQ(host.handle(message, stop).status, SLUICE_RELEASE);

  Stop late;
  late.timed_out = true;
  const Result result = host.handle(message, late);
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("within the job's timeout"), std::string::npos);
}

}  // namespace
}  // namespace sluice::shipped
