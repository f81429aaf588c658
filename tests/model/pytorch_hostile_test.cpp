#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/files.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/pickle_writer.h"
#include "model/checkpoint/pytorch_file.h"
#include "model/checkpoint/zip_writer.h"
#include "read_everything.h"
#include "support.h"
#include "support/errors.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

// Files that were cut off, damaged or made to do harm. Run under the sanitizers
// these show that nothing outside the bytes is read.
namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::synthetic;
using testing::TemporaryFolder;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

bool readable(const std::string& bytes) {
  return testing::read_everything(bytes_of(bytes));
}

class DamagedFiles : public ::testing::TestWithParam<const char*> {
 protected:
  std::string content() const { return read_file(synthetic(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(
    Containers,
    DamagedFiles,
    ::testing::Values(
        "published.pt", "published_2019.pt", "main_omegaconf_legacy.pt", "light_strided.pt"),
    [](const auto& info) {
      const std::string name = info.param;
      return name.substr(0, name.find('.'));
    });

TEST_P(DamagedFiles, AreErrorsWhereverTheyAreCutOff) {
  const std::string whole = content();
  ASSERT_TRUE(readable(whole));
  for (size_t size = 0; size < whole.size(); size += 7)
    EXPECT_FALSE(readable(whole.substr(0, size))) << size;
}

TEST_P(DamagedFiles, NeverDoHarm) {
  const std::string whole = content();
  std::mt19937_64 random(5);
  const int rounds = testing::rounds(4000);
  int errors = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string damaged = whole;
    for (int change = 0; change < 1 + i % 3; ++change)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    errors += !readable(damaged);
  }
  EXPECT_GT(errors, rounds / 40);
}

TEST(FuzzedFiles, OfTheKeptCorpusDoNoHarm) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(synthetic("..") / "corpus")) {
    readable(read_file(entry.path()));
    ++files;
  }
  EXPECT_GT(files, 10);
}

TEST(DamagedArchives, SayThatASumIsWrong) {
  const std::string whole = read_file(synthetic("published.pt"));
  const PyTorchFile intact(bytes_of(whole), "file");
  const PickleValue table = intact.root().find("model").find("encoder.embed_tokens.weight");
  const auto place = intact.tensor(table, "t").storage.data() - bytes_of(whole).data();
  std::string damaged = whole;
  damaged[static_cast<size_t>(place)] ^= 1;
  EXPECT_THAT(
      error_of([&] {
        const PyTorchFile file(bytes_of(damaged), "file");
        file.check_storage(file.root().find("model").find("encoder.embed_tokens.weight"));
      }),
      AllOf(HasSubstr("file: the archive is damaged"), HasSubstr("sum of")));
}

/// An archive with this pickle and a storage "0" of 64 bytes.
class Archive {
 public:
  explicit Archive(const std::string& pickle) {
    const auto path = folder_.path() / "file.pt";
    ZipWriter zip(path);
    zip.add("a/data.pkl", bytes_of(pickle));
    zip.add("a/data/0", bytes_of(std::string(64, '\1')));
    zip.commit();
    content_ = read_file(path);
  }
  std::string error() const {
    return error_of([&] {
      const PyTorchFile file(bytes_of(content_), "file");
      if (PyTorchFile::is_tensor(file.root()))
        file.tensor(file.root(), "t");
      else
        file.root().settings();
    });
  }

 private:
  TemporaryFolder folder_;
  std::string content_;
};

/// What stands in a tensor's pickle.
struct TensorText {
  std::string storage = "FloatStorage";
  std::string key = "0";
  int64_t offset = 0;
  std::vector<int64_t> shape = {4, 4};
  std::vector<int64_t> strides = {4, 1};
};

void write_list(PickleWriter& pickle, const std::vector<int64_t>& list) {
  pickle.begin_tuple();
  for (const int64_t entry : list)
    pickle.integer(entry);
  pickle.end_tuple();
}

std::string tensor_error(const TensorText& tensor) {
  PickleWriter pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.begin_tuple();
  pickle.begin_tuple();
  pickle.text("storage");
  pickle.global("torch", tensor.storage);
  pickle.text(tensor.key);
  pickle.text("cpu");
  pickle.integer(16);
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(tensor.offset);
  write_list(pickle, tensor.shape);
  write_list(pickle, tensor.strides);
  pickle.end_tuple();
  pickle.call();
  return Archive(pickle.finish()).error();
}

TEST(HostileTensors, StayInsideTheirStorage) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(
      tensor_error({.shape = {4, 5}, .strides = {4, 1}}),
      HasSubstr("'t' reaches outside its storage of 16 elements"));
  EXPECT_THAT(tensor_error({.offset = 1}), HasSubstr("reaches outside"));
  EXPECT_THAT(tensor_error({.offset = kMost}), HasSubstr("reaches outside"));
  EXPECT_THAT(
      tensor_error({.shape = {kMost, kMost}, .strides = {kMost, 1}}), HasSubstr("reaches outside"));
  EXPECT_THAT(
      tensor_error({.shape = {2, 2}, .strides = {kMost, kMost}}), HasSubstr("reaches outside"));
  EXPECT_THAT(
      tensor_error({.storage = "DoubleStorage"}), HasSubstr("outside its storage of 8 elements"));
}

TEST(HostileTensors, DoNotUnfold) {
  EXPECT_THAT(
      tensor_error({.shape = {1 << 30, 1 << 30}, .strides = {0, 0}}),
      HasSubstr("repeats its elements"));
  EXPECT_THAT(
      tensor_error(
          {.shape = std::vector<int64_t>(1000, 1), .strides = std::vector<int64_t>(1000, 1)}),
      HasSubstr("at most 8"));
}

TEST(HostileTensors, HaveSizesThatAreNumbers) {
  EXPECT_THAT(tensor_error({.offset = -1}), HasSubstr("not negative"));
  EXPECT_THAT(tensor_error({.shape = {-4, 4}}), HasSubstr("not negative"));
  EXPECT_THAT(tensor_error({.strides = {4}}), HasSubstr("as many strides"));
  EXPECT_THAT(tensor_error({.storage = "BoolStorage"}), HasSubstr("but has a torch.BoolStorage"));
  EXPECT_THAT(tensor_error({.storage = "Strange"}), HasSubstr("but has a torch.Strange"));
  EXPECT_THAT(
      tensor_error({.key = "../../etc/passwd"}),
      HasSubstr("storage '../../etc/passwd' is not in the file"));
}

std::string pickle_error(const std::string& operations) {
  return Archive("\x80\x02" + operations).error();
}

TEST(HostilePickles, AreErrors) {
  const std::string four(4, '\xFF');
  EXPECT_THAT(pickle_error("."), HasSubstr("a value is missing"));
  EXPECT_THAT(pickle_error("N"), HasSubstr("1 bytes must follow"));
  EXPECT_THAT(pickle_error("X" + four + "ab."), HasSubstr("only 3"));
  EXPECT_THAT(pickle_error("h\x05."), HasSubstr("nothing was put under 5"));
  EXPECT_THAT(pickle_error("t."), HasSubstr("a mark is missing"));
  EXPECT_THAT(pickle_error("(0."), HasSubstr("a value is missing"));
  EXPECT_THAT(pickle_error("}NNNu."), HasSubstr("a mark is missing"));
  EXPECT_THAT(pickle_error("}(Nu."), HasSubstr("a key has no value"));
  EXPECT_THAT(pickle_error("NNa."), HasSubstr("items are added"));
  EXPECT_THAT(pickle_error("NNb."), HasSubstr("only an object has a state"));
  EXPECT_THAT(pickle_error("N)R."), HasSubstr("only a global can be called"));
  EXPECT_THAT(pickle_error("cm\nn\nNR."), HasSubstr("must be a tuple"));
  EXPECT_THAT(pickle_error("cmodule"), HasSubstr("a name has no end"));
  EXPECT_THAT(pickle_error("\x80\x09N."), HasSubstr("the protocol must be"));
  EXPECT_THAT(pickle_error("I1\n."), HasSubstr("uses opcode 73"));
}

TEST(HostilePickles, AreBounded) {
  std::string nested = "N";
  nested.append(200'000, '\x85');  // a tuple in a tuple in a tuple
  EXPECT_THAT(pickle_error(nested + "."), HasSubstr("nested too deep"));
  std::string laughs = "]q";
  laughs += '\0';
  for (char level = 1; level < 60; ++level)  // each list holds the last twice
    laughs += std::string("](h") + static_cast<char>(level - 1) + "h" +
        static_cast<char>(level - 1) + "eq" + level;
  EXPECT_THAT(pickle_error(laughs + "."), HasSubstr("too many"));
  const std::string itself = std::string("]q\0h\0a.", 7);
  EXPECT_THAT(pickle_error(itself), HasSubstr("nested too deep"));
  EXPECT_THAT(
      pickle_error(std::string(2'000'000, 'N') + "."), HasSubstr("more than 1000000 values"));
}

TEST(HostilePickles, ExecuteNothing) {
  PickleWriter pickle;
  pickle.begin_dictionary();
  pickle.text("model");
  pickle.global("os", "system");
  pickle.begin_tuple();
  pickle.text("touch /tmp/harm");
  pickle.end_tuple();
  pickle.call();
  pickle.end_dictionary();
  const std::string bytes = pickle.finish();
  size_t consumed = 0;
  const Pickle parsed(bytes_of(bytes), "file", consumed);
  EXPECT_EQ(consumed, bytes.size());
  EXPECT_EQ(parsed.root().find("model").description(), "an object of the class os.system");
}

TEST(HostileCheckpoints, NameTheClassInTheModelsDictionary) {
  const TemporaryFolder folder;
  PickleWriter pickle;
  pickle.begin_dictionary();
  pickle.text("model");
  pickle.begin_dictionary();
  pickle.text("encoder.layers.0.fc1.weight");
  pickle.global("builtins", "eval");
  pickle.begin_tuple();
  pickle.text("1");
  pickle.end_tuple();
  pickle.call();
  pickle.end_dictionary();
  pickle.end_dictionary();
  const auto path = folder.path() / "file.pt";
  ZipWriter zip(path);
  zip.add("a/data.pkl", bytes_of(pickle.finish()));
  zip.commit();
  EXPECT_THAT(
      error_of([&] { FairseqCheckpoint checkpoint(path, CheckpointWeights::kTrained); }),
      HasSubstr("file.pt: 'encoder.layers.0.fc1.weight' must be a tensor, but is an object of the "
                "class builtins.eval"));
}

TEST(FairseqCheckpoints, NameIgnoredClassesAndArguments) {
  const FairseqCheckpoint checkpoint(synthetic("published_2019.pt"), CheckpointWeights::kTrained);
  EXPECT_EQ(checkpoint.ignored_classes(), std::vector<std::string>{"fairseq.meters.AverageMeter"});
  EXPECT_EQ(checkpoint.arguments().at("arch"), "lightconv");
  EXPECT_EQ(checkpoint.arguments().at("lr"), Json::array({0.001}));
}

TEST(PyTorchFiles, OthersAreNamed) {
  const TemporaryFolder folder;
  const auto error = [&](std::string_view content) {
    const std::string path = folder.write("f.pt", content);
    return error_of([&] { PyTorchFile file(path); });
  };
  EXPECT_THAT(error(""), HasSubstr("not a PyTorch file"));
  EXPECT_THAT(error("hello, world, this is text"), HasSubstr("f.pt: not a"));
  const auto path = folder.path() / "z.pt";
  ZipWriter zip(path);
  zip.add("a/other", bytes_of("x"));
  zip.commit();
  EXPECT_THAT(
      error_of([&] { PyTorchFile file(path); }), HasSubstr("the archive holds no data.pkl"));
}

}  // namespace
}  // namespace seqconv::internal
