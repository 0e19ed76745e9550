#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// A copy on the heap of exactly the input's size, so that a sanitizer sees the first byte read beyond it.
void run(const std::string& bytes) {
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  ASSERT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
}

TEST(Corpus, EveryInputAndItsBeginningsAreSurvived) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS_DIR)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty()) << FUZZ_CORPUS_DIR;
  run("");
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const std::size_t step = std::max<std::size_t>(1, bytes.size() / 256);
    for (std::size_t size = 0; size < bytes.size(); size += step) {
      run(bytes.substr(0, size));
    }
    run(bytes);
  }
}

}  // namespace
