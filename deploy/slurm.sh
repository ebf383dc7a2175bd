#!/bin/bash
# A judge on the GPUs of a Slurm job; the gateway runs on its first node.
#   sbatch --nodes=4 --gpus-per-node=8 deploy/slurm.sh
#SBATCH --job-name=adaexplore-judge
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --signal=B:TERM@120
set -euo pipefail
: "${ADAEXPLORE_JUDGE_TOKEN:?set the token that clients send}"
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ADDRESS=$HEAD:${RAY_PORT:-6379}
export JUDGE_DEVICE=cuda RAY_USAGE_STATS_ENABLED=0 RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=90

# Run a command on this many nodes, and restart it when it ends; jobs in the journal survive.
again() {
    srun --nodes="$1" --ntasks="$1" --overlap "$2" bash -c 'while true; do "$@"; sleep 5; done' - "${@:3}" &
}

again 1 --nodelist="$HEAD" ray start --head --port="${ADDRESS##*:}" --dashboard-host=127.0.0.1 --block
sleep 20
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    again $((SLURM_JOB_NUM_NODES - 1)) --exclude="$HEAD" ray start --address="$ADDRESS" --block
fi
again 1 --nodelist="$HEAD" adaexplore judge --host 0.0.0.0 --ray "$ADDRESS"

trap 'kill -TERM $(jobs -p); wait' TERM
wait
