#include "train/processes/torch_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/error.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

/// Numbers that lie on `device`, as a tensor that does not own them.
template <class T>
at::Tensor view(std::span<T> values, at::Device device) {
  using Value = std::remove_const_t<T>;
  return at::for_blob(const_cast<Value*>(values.data()), {static_cast<int64_t>(values.size())})
      .options(at::TensorOptions().dtype(c10::CppTypeToScalarType<Value>::value).device(device))
      .target_device(device)  // is not to be asked of the pointer
      .make_tensor();
}

void wait_for(const c10::intrusive_ptr<c10d::Work>& work) {
  if (work)
    work->wait();
}

/// Calls `work(begin, count)` for pieces of [begin, end).
template <class Work>
void for_pieces(int64_t begin, int64_t end, int64_t piece, const Work& work) {
  for (; begin < end; begin += piece)
    work(begin, std::min(piece, end - begin));
}

}  // namespace

TorchCommunicator::TorchCommunicator(TorchCommunicatorParts parts, int64_t piece)
    : parts_(std::move(parts)), piece_(piece) {
  const Communicator* host = parts_.host.get();
  if (host != nullptr && (host->size() != size() || host->rank() != rank()))
    fail_usage(
        "the processes of a run are to be the same on devices and hosts, but rank ",
        rank(),
        " of ",
        size(),
        " is rank ",
        host->rank(),
        " of ",
        host->size(),
        " there");
}

TorchCommunicator::~TorchCommunicator() {
  if (std::uncaught_exceptions() > 0) {
    // Taking it down could wait for what the others have not sent.
    parts_.backend.release();
    return;
  }
  try {
    barrier();  // the first may still be writing
    parts_.backend->shutdown();
  } catch (const std::exception&) {
    // Another process has ended: its starter says so.
  }
}

int64_t TorchCommunicator::rank() const {
  return parts_.backend->getRank();
}

int64_t TorchCommunicator::size() const {
  return parts_.backend->getSize();
}

int64_t TorchCommunicator::local_size() const {
  return parts_.host ? parts_.host->local_size() : parts_.local_size;
}

int64_t TorchCommunicator::local_rank() const {
  return parts_.host ? parts_.host->local_rank() : parts_.local_rank;
}

void TorchCommunicator::start(const at::Tensor& values) {
  has_begun_ = true;
  wait_at_most(kMostOfASum);
  std::vector<at::Tensor> list{values};
  started_.push_back(parts_.backend->allreduce(list));
}

void TorchCommunicator::start_sum(std::span<float> bucket) {
  start(view(bucket, parts_.device));
}

void TorchCommunicator::start_sum(std::span<double> numbers) {
  start(view(numbers, parts_.device));
}

void TorchCommunicator::finish_sums() {
  const std::vector<Work> started = std::exchange(started_, {});
  for (const Work& work : started)
    wait_for(work);
}

/// Of values on the host, in their place.
void TorchCommunicator::reduce(const at::Tensor& here, c10d::ReduceOp::RedOpType how) {
  pause();
  c10d::AllreduceOptions options;
  options.reduceOp = how;
  std::vector<at::Tensor> there{ops::to_device(here, parts_.device)};
  wait_for(parts_.backend->allreduce(there, options));
  here.copy_(ops::to_host(there[0]));
}

void TorchCommunicator::sum(std::span<double> values) {
  if (parts_.host)
    parts_.host->sum(values);
  else
    reduce(view(values, at::kCPU), c10d::ReduceOp::SUM);
}

int64_t TorchCommunicator::largest(int64_t value) {
  if (parts_.host)
    return parts_.host->largest(value);
  reduce(view(std::span(&value, 1), at::kCPU), c10d::ReduceOp::MAX);
  return value;
}

/// Of values on the device.
void TorchCommunicator::send(const at::Tensor& values, int64_t root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> list{values};
  wait_for(parts_.backend->broadcast(list, options));
}

void TorchCommunicator::broadcast(std::span<std::byte> bytes, int64_t root) {
  if (parts_.host)
    return parts_.host->broadcast(bytes, root);
  pause();
  const at::Tensor here =
      view(std::span(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()), at::kCPU);
  for_pieces(0, here.numel(), piece_, [&](int64_t begin, int64_t count) {
    const at::Tensor part = here.narrow(0, begin, count);
    const at::Tensor there = ops::to_device(part, parts_.device);
    send(there, root);
    if (rank() != root)
      part.copy_(ops::to_host(there));
  });
}

void TorchCommunicator::check_ends(std::span<const int64_t> ends) const {
  SEQCONV_CHECK(
      static_cast<int64_t>(ends.size()) == size(),
      "each of ",
      size(),
      " processes has a share, but got ends of ",
      ends.size());
}

void TorchCommunicator::share(std::span<float> values, std::span<const int64_t> ends) {
  check_ends(ends);
  at::Tensor whole = view(values, parts_.device);
  SEQCONV_CHECK(
      ends.back() == whole.numel(),
      "shares that end at ",
      ends.back(),
      " are those of as many elements, but got ",
      whole.numel());
  wait_at_most(kMostOfASum);
  std::vector<at::Tensor> shares;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    shares.push_back(whole.narrow(0, begin, end - begin));
    begin = end;
  }
  at::Tensor own = shares[static_cast<size_t>(rank())];
  const auto as_long = [&](const at::Tensor& share) { return share.numel() == own.numel(); };
  if (std::ranges::all_of(shares, as_long)) {  // needs no memory of its own
    wait_for(parts_.backend->_allgather_base(whole, own));
    return;
  }
  std::vector<std::vector<at::Tensor>> all{shares};
  std::vector<at::Tensor> mine{own};
  wait_for(parts_.backend->allgather(all, mine));
}

/// Share by share through a piece of the device's memory, as the first may have
/// no room for the whole there. All get them, as sending to one alone would
/// need a connection of its own for each process.
void TorchCommunicator::collect(
    std::span<const float> own, std::span<float> values, std::span<const int64_t> ends) {
  check_ends(ends);
  pause();
  const at::Tensor mine = view(own, parts_.device);
  const at::Tensor whole = view(values, at::kCPU);
  int64_t begin = 0;
  for (int64_t root = 0; root < size(); ++root) {
    const int64_t end = ends[static_cast<size_t>(root)];
    const bool is_root = root == rank();
    SEQCONV_CHECK(
        !is_root || mine.numel() == end - begin,
        "the share of rank ",
        root,
        " has ",
        end - begin,
        " elements, but got ",
        mine.numel());
    for_pieces(begin, end, piece_, [&](int64_t first, int64_t count) {
      const at::Tensor part =
          is_root ? mine.narrow(0, first - begin, count) : at::empty({count}, mine.options());
      send(part, root);
      if (!values.empty())
        whole.narrow(0, first, count).copy_(ops::to_host(part));
    });
    begin = end;
  }
}

void TorchCommunicator::abort(int code) {
  if (parts_.host)
    parts_.host->abort(code);
  std::_Exit(code);
}

int64_t TorchCommunicator::updates_between_questions() const {
  return parts_.host ? 1 : kUpdatesBetweenQuestions;
}

void TorchCommunicator::pause() {
  wait_at_most(has_begun_ ? kMostOfAPause : kMostOfPreparing);
}

/// Each sum or copy takes the time that holds when it is started.
void TorchCommunicator::wait_at_most(std::chrono::milliseconds time) {
  if (time == most_)
    return;
  parts_.backend->setTimeout(time);
  most_ = time;
}

}  // namespace seqconv::internal
