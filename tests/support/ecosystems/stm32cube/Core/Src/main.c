#include <stdio.h>

/* USER CODE BEGIN Includes */
#include TEST_DATA
/* USER CODE END Includes */

int main(void)
{
    /* USER CODE BEGIN 2 */
    unsigned differing = TESTS;
    printf(differing == 0 ? "PASS\n" : "FAIL: %u\n", differing);
    /* USER CODE END 2 */
    return 0;
}
