"""Whole layers on an accelerator: what of the network lies in its memory, in which tiles the rest goes through it.

kernel     an accelerator among the kernels that a layer may have
residence  which tensors lie in L1 from the layer that writes them to the last that reads them
tiling     the tiling_candidates to cut a layer into tiles, and the buffers that each needs
schedule   a candidate as commands: transfers, tiles to start, what to wait for, work of the core
timeline   what commands take on core, engine and DMA
search     a candidate for each layer and a place for each tensor, over the whole network
program    what comes of it, in plan.json
c          a program as a function of the emitted sources
"""
