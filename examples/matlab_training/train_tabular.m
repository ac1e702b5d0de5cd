% Train a table of action values with a replay memory and a training loop of your own.
%
% A robot moves through a small warehouse to its charging station. It starts in any free cell, moves up, down, left or
% right, and stays where it is when a shelf or the outer wall is in the way. Each step costs 1, the station gives 10.
% After each episode its experiences go into the memory, and some mini-batches drawn from it improve the table.
%
% Score: started once in each of the 21 free cells, the robot takes the shortest way: a mean return of 107/21, or 5.10.

rng(0)

% The warehouse: 0 is free, 1 a shelf, 2 the charging station.
warehouse = [0 0 0 0 0 0
             0 1 1 0 1 0
             0 0 1 0 1 0
             1 0 0 0 1 0
             0 0 1 0 0 2];
[numRows,numCols] = size(warehouse);
moves = [-1 1 0 0; 0 0 -1 1];

% What the agent sees is its row and its column; what it does is one of four moves.
obsInfo = rlNumericSpec([2 1],LowerLimit=1,UpperLimit=[numRows;numCols],Name="cell");
actInfo = rlFiniteSetSpec([1 2 3 4],Name="move");
numActions = numel(actInfo.Elements);

buffer = rlReplayMemory(obsInfo,actInfo,5000);
Q = zeros(numRows*numCols,numActions);

maxEpisodes = 200;
maxSteps = 40;
miniBatchSize = 32;
learnRate = 0.5;
discount = 0.95;
epsilon = 1;
epsilonMin = 0.05;
epsilonDecay = 0.98;

for episode = 1:maxEpisodes

    % One episode; its experiences are collected in a struct array.
    experience = struct([]);
    position = randomCell(warehouse);
    for step = 1:maxSteps
        if rand < epsilon
            index = randi(numActions);
        else
            [~,index] = max(Q(stateNumber(position,numRows),:));
        end
        action = actInfo.Elements(index);
        [nextPosition,reward,isDone] = stepRobot(position,action,warehouse,moves);
        if isDone == 0 && step == maxSteps
            isDone = 2;
        end
        experience(step).Observation = {position};
        experience(step).Action = {action};
        experience(step).NextObservation = {nextPosition};
        experience(step).Reward = reward;
        experience(step).IsDone = isDone;
        position = nextPosition;
        if isDone > 0
            break
        end
    end
    append(buffer,experience);

    % As many mini-batches as there were steps. IsDone is 2 where only the time was up: such a cell has a future.
    for update = 1:step
        [miniBatch,mask] = sample(buffer,miniBatchSize);
        state = stateNumber(miniBatch.Observation{1},numRows);
        nextState = stateNumber(miniBatch.NextObservation{1},numRows);
        action = miniBatch.Action{1}(:);
        goesOn = miniBatch.IsDone(:) ~= 1;
        target = miniBatch.Reward(:) + discount*goesOn.*max(Q(nextState,:),[],2);
        entry = sub2ind(size(Q),state,action);
        Q(entry) = Q(entry) + learnRate*mask(:).*(target - Q(entry));
    end

    epsilon = max(epsilonMin,epsilon*epsilonDecay);
    if mod(episode,50) == 0
        meanReturn = evaluateTable(Q,warehouse,moves,maxSteps);
        fprintf("episode %d: epsilon %.2f, mean return %.2f\n",episode,epsilon,meanReturn);
    end
end

meanReturn = evaluateTable(Q,warehouse,moves,maxSteps);
fprintf("mean return from every free cell: %.2f\n",meanReturn);
assert(meanReturn >= 5.09)

function [nextPosition,reward,isDone] = stepRobot(position,action,warehouse,moves)
    % One step of the environment.
    nextPosition = position + moves(:,action);
    inside = all(nextPosition >= 1) && all(nextPosition <= size(warehouse).');
    if ~inside || warehouse(nextPosition(1),nextPosition(2)) == 1
        nextPosition = position;
    end
    isDone = double(warehouse(nextPosition(1),nextPosition(2)) == 2);
    reward = -1 + 10*isDone;
end

function state = stateNumber(position,numRows)
    % The number of a cell, or a column with the numbers of all cells of a mini-batch.
    position = reshape(position,2,[]);
    state = (position(1,:) + numRows*(position(2,:) - 1)).';
end

function position = randomCell(warehouse)
    % Row and column of a free cell.
    [rows,cols] = find(warehouse == 0);
    which = randi(numel(rows));
    position = [rows(which);cols(which)];
end

function meanReturn = evaluateTable(Q,warehouse,moves,maxSteps)
    % The mean return of the greedy policy, started once in each free cell.
    [rows,cols] = find(warehouse == 0);
    total = 0;
    for start = 1:numel(rows)
        position = [rows(start);cols(start)];
        for step = 1:maxSteps
            [~,action] = max(Q(stateNumber(position,size(warehouse,1)),:));
            [position,reward,isDone] = stepRobot(position,action,warehouse,moves);
            total = total + reward;
            if isDone == 1
                break
            end
        end
    end
    meanReturn = total/numel(rows);
end
