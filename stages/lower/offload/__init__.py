"""Run layers on an accelerator: place tensors in its memory, cut layers, plan transfers.

kernel        an accelerator as a kernel that a layer may have
residence     tensors that stay in L1 from the layer that writes them to the last reader
tiling        tiling candidates of a layer, and the buffers that each needs
schedule      a candidate as commands: transfers, tiles to start, waits, work of the core
timeline      cycles of commands on core, engine and DMA
search        a candidate for each layer and a place for each tensor, over the network
program       the result, in plan.json
c             a program as a function of the emitted sources
"""
