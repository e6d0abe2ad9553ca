#include "tandem/device/cuda.h"
#include "tandem/device/graph.h"

namespace tandem {

Graph::~Graph() {
  if (handle_) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle_));
}

void Graph::capture(StreamView stream, const std::function<void()>& work) {
  expect(!handle_);
  cudaGraph_t graph = nullptr;
  // ThreadLocal mode: other threads may use CUDA during the capture.
  cuda_check(cudaStreamBeginCapture(cuda_stream(stream), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(cuda_stream(stream), &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  cuda_check(cudaStreamEndCapture(cuda_stream(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  cuda_check(status, "cudaGraphInstantiate");
  handle_ = executable;
}

void Graph::replay(StreamView stream) const {
  cuda_check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_), cuda_stream(stream)), "cudaGraphLaunch");
}

}  // namespace tandem
