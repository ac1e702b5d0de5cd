"""Train a table of action values with a replay memory: train_tabular.m, line by line.

The lines, their order, the names and the comments are those of the MATLAB script. What changes:

* **Indices start at 0**: cells, moves, elements of the struct array, loops. Whatever indexes must be an integer, and
  what comes out of a memory of doubles is none: ``.astype(int)``.
* **Cells** are lists: ``{position}`` is ``[position]``, and ``miniBatch.Observation{1}`` is ``.Observation[0]``.
* **Outputs**: Python does not see how many you want, so `sample` is told: ``nargout=2``. Functions of your own return
  a tuple of all outputs, and ``_`` takes what is not wanted.
* **Columns**: MATLAB's ``x(:)`` and sums over ``[],2`` are columns; here they are 1-D arrays, ``x.ravel()`` and
  ``axis=1``. Mixed with a column (B, 1) they would grow into a table of (B, B), without a word. ``find`` goes down
  the columns and ``np.nonzero`` along the rows: the same cells, in another order.
* **Random numbers** come from a generator, ``rng``, and the memory has one of its own, hence ``Seed=0``.
* **Functions** must be there before they are called. The body of the script is a function too, and runs at the end.

Score: started once in each of the 21 free cells, the robot takes the shortest way: a mean return of 107/21, or 5.10.
"""

# ruff: noqa: F403, F405, N802, N803, N806 -- the names are MATLAB's, and all of them are wanted

import numpy as np

from matlab_compat import *


def main():
    rng = np.random.default_rng(0)

    # The warehouse: 0 is free, 1 a shelf, 2 the charging station.
    warehouse = np.array([[0, 0, 0, 0, 0, 0],
                          [0, 1, 1, 0, 1, 0],
                          [0, 0, 1, 0, 1, 0],
                          [1, 0, 0, 0, 1, 0],
                          [0, 0, 1, 0, 0, 2]])  # fmt: skip
    numRows, numCols = warehouse.shape
    moves = np.array([[-1, 1, 0, 0], [0, 0, -1, 1]])

    # What the agent sees is its row and its column; what it does is one of four moves.
    obsInfo = rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[numRows - 1], [numCols - 1]], Name="cell")
    actInfo = rlFiniteSetSpec([0, 1, 2, 3], Name="move")
    numActions = numel(actInfo.Elements)

    buffer = rlReplayMemory(obsInfo, actInfo, 5000, Seed=0)
    Q = np.zeros((numRows * numCols, numActions))

    maxEpisodes = 200
    maxSteps = 40
    miniBatchSize = 32
    learnRate = 0.5
    discount = 0.95
    epsilon = 1
    epsilonMin = 0.05
    epsilonDecay = 0.98

    for episode in range(1, maxEpisodes + 1):  # indexes nothing, so it may start at 1
        # One episode; its experiences are collected in a struct array.
        experience = struct()
        position = randomCell(warehouse, rng)
        for step in range(maxSteps):
            if rng.random() < epsilon:
                index = rng.integers(numActions)
            else:
                index = np.argmax(Q[stateNumber(position, numRows), :])
            action = actInfo.Elements[index]
            nextPosition, reward, isDone = stepRobot(position, action, warehouse, moves)
            if isDone == 0 and step == maxSteps - 1:
                isDone = 2
            experience[step].Observation = [position]
            experience[step].Action = [action]
            experience[step].NextObservation = [nextPosition]
            experience[step].Reward = reward
            experience[step].IsDone = isDone
            position = nextPosition
            if isDone > 0:
                break
        append(buffer, experience)

        # As many mini-batches as there were steps. IsDone is 2 where only the time was up: such a cell has a future.
        for update in range(step + 1):  # noqa: B007
            miniBatch, mask = sample(buffer, miniBatchSize, nargout=2)
            state = stateNumber(miniBatch.Observation[0], numRows)
            nextState = stateNumber(miniBatch.NextObservation[0], numRows)
            action = miniBatch.Action[0].ravel().astype(int)
            goesOn = miniBatch.IsDone.ravel() != 1
            target = miniBatch.Reward.ravel() + discount * goesOn * Q[nextState, :].max(axis=1)
            entry = state, action
            Q[entry] = Q[entry] + learnRate * mask.ravel() * (target - Q[entry])

        epsilon = max(epsilonMin, epsilon * epsilonDecay)
        if episode % 50 == 0:
            meanReturn = evaluateTable(Q, warehouse, moves, maxSteps)
            print(f"episode {episode}: epsilon {epsilon:.2f}, mean return {meanReturn:.2f}")

    meanReturn = evaluateTable(Q, warehouse, moves, maxSteps)
    print(f"mean return from every free cell: {meanReturn:.2f}")
    assert meanReturn >= 5.09


def stepRobot(position, action, warehouse, moves):
    # One step of the environment.
    nextPosition = position + moves[:, [int(action)]]  # the list keeps it a column
    inside = np.all(nextPosition >= 0) and np.all(nextPosition.ravel() < warehouse.shape)
    if not inside or warehouse[nextPosition[0, 0], nextPosition[1, 0]] == 1:
        nextPosition = position
    isDone = float(warehouse[nextPosition[0, 0], nextPosition[1, 0]] == 2)
    reward = -1 + 10 * isDone
    return nextPosition, reward, isDone


def stateNumber(position, numRows):
    # The number of a cell, or a column with the numbers of all cells of a mini-batch.
    position = position.reshape(2, -1)
    return (position[0, :] + numRows * position[1, :]).astype(int)


def randomCell(warehouse, rng):
    # Row and column of a free cell.
    rows, cols = np.nonzero(warehouse == 0)
    which = rng.integers(numel(rows))
    return np.array([[rows[which]], [cols[which]]])


def evaluateTable(Q, warehouse, moves, maxSteps):
    # The mean return of the greedy policy, started once in each free cell.
    rows, cols = np.nonzero(warehouse == 0)
    total = 0
    for start in range(numel(rows)):
        position = np.array([[rows[start]], [cols[start]]])
        for step in range(maxSteps):  # noqa: B007
            action = np.argmax(Q[stateNumber(position, warehouse.shape[0]), :])
            position, reward, isDone = stepRobot(position, action, warehouse, moves)
            total = total + reward
            if isDone == 1:
                break
    return total / numel(rows)


if __name__ == "__main__":
    main()
