# Completion of the command `yoke` for bash: commands, networks, and the options of each command.
# Installed as share/bash-completion/completions/yoke; or `source` this file.

_yoke() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} options
  local memory="--memory-limit --memory-fraction --memory-growth"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "train evaluate predict summary convert explain plan bench verify ops devices doctor config params --help --version" -- "$word"))
    return
  fi
  case $before in
    --data) COMPREPLY=($(compgen -W "shapes10" -- "$word") $(compgen -f -- "$word")); return ;;
    --test-data) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --data-format) COMPREPLY=($(compgen -W "cifar10 idx csv npy npz tfrecord folder" -- "$word")); return ;;
    --tensorboard) COMPREPLY=($(compgen -d -- "$word")); return ;;
    --out | --trace | --save | --rehearse | --checkpoint | --csv | --plot) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --devices) COMPREPLY=($(compgen -W "auto cpu:0 gpu:0 gpu:0,gpu:1" -- "$word")); return ;;
    --optimizer) COMPREPLY=($(compgen -W "sgd momentum nesterov adam adamw lamb rmsprop adagrad adadelta ftrl keras_sgd keras_rmsprop
      keras_adagrad" -- "$word")); return ;;
    --schedule) COMPREPLY=($(compgen -W "constant exponential natural_exp inverse_time piecewise polynomial cosine restarts
      one_cycle" -- "$word")); return ;;
    --batch | --steps | --epochs | --lr | --seed | --interval | --virtual-gpus | --memory-limit | --memory-fraction | --split | --checkpoint-every | --keep | --keep-every) return ;;
    --learning-rate | --clip-norm | --holdout | --label | --classes | --skip-corrupt | --tolerance | --watch | --count) return ;;
    --replicas | --check-replicas | --gradient-histograms | --metrics | --early-stopping | --divide) return ;;
    --keras) COMPREPLY=($(compgen -W "2 3" -- "$word")); return ;;
    --loss) COMPREPLY=($(compgen -W "mse mae huber binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy" -- "$word")); return ;;
    --strategy) COMPREPLY=($(compgen -W "auto home sharded mirrored" -- "$word")); return ;;
    --precision) COMPREPLY=($(compgen -W "f32 bf16 f16" -- "$word")); return ;;
    --nan-check) COMPREPLY=($(compgen -W "finite nan off" -- "$word")); return ;;
    --require) COMPREPLY=($(compgen -W "gpu" -- "$word")); return ;;
  esac
  case $verb in
    train) options="--data --data-format --test-data --holdout --label --classes --skip-corrupt --devices --virtual-gpus $memory
      --split --rehearse --batch --steps --epochs --optimizer --schedule --lr --learning-rate --clip-norm --nan-check
      --precision --strategy --replicas --deterministic --sync-batch-norm --check-replicas --seed --out
      --checkpoint-every --keep --keep-every --resume --tensorboard --gradient-histograms --trace --interval --loss
      --metrics --checkpoint --early-stopping --csv --divide --soft-placement --log-device-placement --live --quiet
      --json --help" ;;
    evaluate) options="--data --data-format --test-data --holdout --label --classes --skip-corrupt --devices --virtual-gpus $memory
      --split --batch --out --loss --metrics --divide --soft-placement --json --help" ;;
    predict) options="--data --data-format --holdout --label --classes --skip-corrupt --devices --virtual-gpus $memory --split
      --batch --out --divide --soft-placement --json --help" ;;
    summary) options="--plot --expand-nested --json --help" ;;
    convert) options="--out --keras --weights --help" ;;
    explain) options="--devices --virtual-gpus $memory --split --rehearse --batch --optimizer --schedule --lr --learning-rate --clip-norm --nan-check --precision
      --strategy --replicas --deterministic --sync-batch-norm --soft-placement --log-device-placement --help" ;;
    plan) options="--devices --virtual-gpus $memory --split --rehearse --batch --optimizer --schedule --lr --learning-rate --clip-norm --nan-check --precision
      --strategy --replicas --deterministic --sync-batch-norm --soft-placement --no-time --json --help" ;;
    bench) options="--data --data-format --holdout --label --classes --skip-corrupt --devices --virtual-gpus $memory --split --batch --steps
      --optimizer --schedule --lr --learning-rate --clip-norm --nan-check --precision --strategy --replicas --deterministic --sync-batch-norm --seed --soft-placement --json --help" ;;
    verify) options="--data --data-format --holdout --label --classes --skip-corrupt --devices --virtual-gpus $memory --split --batch --steps
      --optimizer --schedule --lr --learning-rate --clip-norm --nan-check --precision --strategy --replicas --deterministic --sync-batch-norm --seed --soft-placement --tolerance
      --json --help" ;;
    ops) options="--no-gradient --json --help" ;;
    devices) options="--virtual-gpus $memory --split --save --rehearse --topology --bench --watch --count --json --help" ;;
    doctor) options="--virtual-gpus $memory --require --json --help" ;;
    config) options="--dump --json --help" ;;
    params) options="--json --help" ;;
    *) return ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *)
      case $verb in
        train | evaluate) COMPREPLY=($(compgen -W "cifar10 resnet20 mlp resnet50 lstm transformer" -- "$word") $(compgen -f -X '!*.@(h5|keras)' -- "$word")) ;;
        explain | plan | bench | verify) COMPREPLY=($(compgen -W "cifar10 resnet20 mlp" -- "$word")) ;;
        predict | summary | convert) COMPREPLY=($(compgen -W "resnet50 lstm transformer" -- "$word") $(compgen -f -X '!*.@(h5|keras)' -- "$word")) ;;
      esac ;;
  esac
}
complete -o filenames -F _yoke yoke
