// Modules, layers, losses, initialization, models. This header lists the public headers of tandem/nn.
#pragma once

#include "tandem/nn/activation.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/conv_norm.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/init.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/mlp.h"
#include "tandem/nn/module.h"
#include "tandem/nn/resnet.h"
#include "tandem/nn/sequential.h"
