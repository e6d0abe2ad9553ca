// Training, evaluation, prediction. This header lists the public headers of tandem/train.
#pragma once

#include "tandem/train/class_weights.h"
#include "tandem/train/classifier.h"
#include "tandem/train/explain/class_activation.h"
#include "tandem/train/explain/explain.h"
#include "tandem/train/export/export_onnx.h"
#include "tandem/train/fit.h"
#include "tandem/train/fit_options.h"
#include "tandem/train/image_input.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/metrics.h"
#include "tandem/train/model_file.h"
#include "tandem/train/prediction.h"
#include "tandem/train/pretrain/options.h"
#include "tandem/train/pretrain/pretrain.h"
#include "tandem/train/progress_state.h"
#include "tandem/train/train_result.h"
